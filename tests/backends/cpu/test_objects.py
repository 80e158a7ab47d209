"""Object files that several processes make."""

import pytest

import te_select
from te_select import Workload
from te_select.backends.cpu import objects


@pytest.mark.slow
def test_processes_import_nothing_of_the_current_folder(tmp_path, monkeypatch):
    """A model may lie in a folder of a stranger."""
    folder, path = tmp_path / "stranger", tmp_path / "mask.so"
    folder.mkdir()
    for name in ("json", "contextlib", "tvm", "te_select"):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(objects, "MANY", 1)
    te_select.export([Workload((n,), (n,), (n,)) for n in (4, 5)], path, tuning_logs=False)
    assert len(te_select.load(path)) == 2
    assert not (tmp_path / "ran").exists()
