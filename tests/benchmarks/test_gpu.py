"""The script of the whole GPU run, as far as it works without a GPU."""

import sys
from json import loads

from tests.support import ROOT, cli

sys.path.insert(0, str(ROOT / "benchmarks"))
import gpu


def test_failed_part_fails_the_run_and_the_rest_goes_on(tmp_path, monkeypatch):
    failing = gpu.Part("failing", (sys.executable, "-c", "import sys; sys.exit(3)"), 60)
    fine = gpu.Part("fine", (sys.executable, "-c", "print('fine')"), 60)
    monkeypatch.setattr(gpu, "parts", lambda *_: [failing, fine])
    monkeypatch.setattr(gpu.driver, "missing", lambda: "")
    assert gpu.main(["--out", str(tmp_path)]) == 1
    assert (tmp_path / "fine.log").read_text() == "fine\n"
    statuses = [each["status"] for each in loads((tmp_path / "summary.json").read_text())]
    assert statuses == ["failed", "passed"]


def test_run_without_a_gpu_fails_and_says_that_nothing_was_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu.driver, "missing", lambda: "there is no NVIDIA driver")
    assert gpu.main(["--out", str(tmp_path), "--parts", "tests,bench"]) == 1
    statuses = [each["status"] for each in loads((tmp_path / "summary.json").read_text())]
    assert statuses == ["left out", "left out"]
    assert "nothing was run on a GPU: there is no NVIDIA driver" in capsys.readouterr().err


def test_every_part_of_the_bench_has_flags_that_it_takes(tmp_path):
    benches = [p for p in gpu.parts(tmp_path, "cuda", "default", "*", 4) if "bench" in p.command]
    assert [part.name for part in benches] == ["roof", "bench", "blocks"]
    for part in benches:
        flags = list(part.command[len(gpu.CLI) :])
        flags[flags.index("--target") + 1] = "cuda:sm_90"
        done = cli.run(*flags, "--rounds", "1")
        assert done.exit_code == 2 and "cannot be measured here" in done.output, done.output
