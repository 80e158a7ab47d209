"""Object files that several processes make."""

from types import SimpleNamespace

from pytest import mark

import te_select
from te_select.backends.cpu import objects
from tests.support import flat


@mark.slow
def test_processes_import_nothing_of_the_current_folder(tmp_path, monkeypatch):
    """A model may lie in a folder of a stranger."""
    folder, path = tmp_path / "stranger", tmp_path / "mask.so"
    folder.mkdir()
    for name in ("json", "contextlib", "tvm", "te_select"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("te_select.backends.cpu.objects.MANY", 1)
    te_select.export([flat(n) for n in (4, 5)], path, tuning_logs=False)
    assert len(te_select.load(path)) == 2
    assert not (tmp_path / "ran").exists()


@mark.parametrize("functions, cpus, shares", [(47, 4, []), (48, 3, [3, 3, 2]), (48, 40, [1] * 8)])
def test_many_functions_have_a_process_for_each_cpu(tmp_path, monkeypatch, functions, cpus, shares):
    """They write eight files, however many processes there are."""
    started = []
    monkeypatch.setattr("te_select.backends.cpu.objects._compile", lambda *_: None)
    monkeypatch.setattr(objects, "_start", lambda paths: started.append(len(paths)))
    monkeypatch.setattr("te_select.backends.cpu.objects._finish", lambda _, look: look())
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(cpus))
    kernels = {f"k{i}": SimpleNamespace(functions=(i,)) for i in range(functions)}
    paths = objects.write(kernels, None, tmp_path / "kernel", lambda *_: None)
    assert (started, len(paths)) == (shares, 8 if shares else 1)
