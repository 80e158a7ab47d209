"""Everything that needs a GPU, in one command of under ten minutes: tests, bench, tuning.

Run ``python benchmarks/gpu.py --out build/gpu`` on a machine with an NVIDIA GPU, or a part of it::

    python benchmarks/gpu.py --out build/gpu --parts tests,overhead
    python benchmarks/gpu.py --out build/gpu --parts bench --suite default --only "attention-*"

The parts, the most important first:

    environment  versions, devices, compilers
    tests        pytest -m gpu
    overhead     the cost of a call on 1024 elements, beside torch
    roof         contiguous float32 and bfloat16 of 256 MB, beside the peers and a copy
    bench        a suite, beside the peers and a copy
    blocks       masks drawn in blocks, so that half of the input need not be read
    tune         the suite, with its records

Each part writes a log, ``PART.log``, and its figures beside it while it runs. The bench writes a
line of CSV for every row. ``summary.json`` says how each part went. The time is divided among the
parts. A part that takes longer than its share is interrupted, and keeps what it has. The exit code
is 1 if a part failed or there is no GPU.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import te_select  # noqa: E402 - of the tree that this file lies in
from te_select.runtime.call.cuda import driver  # noqa: E402

CLI = (sys.executable, "-c", "from te_select.cli import main; main()")
TOTAL_SECONDS = 570  # below ten minutes, with time to write
LARGE = ((1 << 26, "float32"), (1 << 27, "bfloat16"))  # 256 MB of output each
_TABLE = 80  # lines; most logs of measurements have fewer
_GRACE = 20  # seconds that an interrupted part has to write what it measured


@dataclass(frozen=True)
class Part:
    """One part of the run.

    Parameters
    ----------
    name
        What ``--parts`` calls it.
    command
        What it runs.
    share
        Its share of the time, in proportion to those of the other parts.
    stdout
        A file for what the command prints, or None for the log.
    shown
        Lines at the end of the log to show.
    """

    name: str
    command: Sequence[str]
    share: float
    stdout: str | None = None
    shown: int = 3


@dataclass(frozen=True)
class Outcome:
    """How a part went.

    Parameters
    ----------
    part, command
        What ran.
    seconds
        How long.
    status
        ``"passed"``, ``"failed"``, ``"interrupted"`` (its time was up) or ``"left out"``.
    """

    part: str
    command: str
    seconds: float
    status: str


def parts(out: Path, target: str, suite: str, only: str, trials: int) -> list[Part]:
    """All parts, in their order."""
    chosen = ("--suite", suite, "--only", only, "--target", target)

    def bench(name: str, share: float, *flags: str) -> Part:
        picture = ("--plot", str(out / f"{name}.png"))
        return Part(name, (*CLI, "bench", *flags, *picture), share, shown=_TABLE)

    large = [f"--workload={json.dumps(_contiguous(n, dtype))}" for n, dtype in LARGE]
    masks = ("--density", "10,50", "--block", "1,64,4096,65536", "--peers", "none")
    pytest = (sys.executable, "-m", "pytest", "-m", "gpu", "-n", "0", "-v", "-rs")
    tuned = ("--trials", str(trials), "--tuning-logs", str(out / "tuning_logs"))
    return [
        Part("environment", (*CLI, "env", "--json"), 20, "environment.json"),
        Part("tests", pytest, 130),
        Part("overhead", (sys.executable, __file__, "--launch-overhead", target), 40, shown=_TABLE),
        bench("roof", 80, *large, "--target", target),
        bench("bench", 170, *chosen),
        bench("blocks", 40, large[0], *masks, "--target", target),
        Part("tune", (*CLI, "tune", *chosen, *tuned), 70, shown=_TABLE),
    ]


def _contiguous(elements: int, dtype: str) -> dict[str, object]:
    """A workload in which nothing broadcasts, as ``--workload`` takes it."""
    return te_select.Workload((elements,), (elements,), (elements,), dtype).to_json()


def run(part: Part, out: Path, seconds: float) -> Outcome:
    """Run a part for at most ``seconds``."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        "PYTHONUNBUFFERED": "1",
    }
    start = time.monotonic()
    with contextlib.ExitStack() as files:
        messages = files.enter_context((out / f"{part.name}.log").open("wb"))
        printed = files.enter_context((out / part.stdout).open("wb")) if part.stdout else messages
        process = subprocess.Popen(
            part.command, stdout=printed, stderr=messages, cwd=ROOT, env=environment
        )
        try:
            code = process.wait(seconds)
            status = "passed" if code == 0 else "failed"
        except subprocess.TimeoutExpired:
            status = "interrupted"
            process.send_signal(signal.SIGINT)
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    return Outcome(part.name, shlex.join(part.command), time.monotonic() - start, status)


def run_all(chosen: Sequence[Part], out: Path, seconds: float, missing: str) -> list[Outcome]:
    """Run parts one after the other; unused time goes to the next part.

    If the device is ``missing``, only the part ``environment`` runs.
    """
    start = time.monotonic()
    total = sum(part.share for part in chosen)
    outcomes: list[Outcome] = []
    shares = 0.0
    for part in chosen:
        shares += part.share
        left = start + (seconds - _GRACE) * shares / total - time.monotonic()
        if left <= 0 or (missing and part.name != "environment"):
            outcomes.append(Outcome(part.name, shlex.join(part.command), 0, "left out"))
        else:
            print(f"{part.name}, {left:.0f} s at most: {shlex.join(part.command)}", flush=True)
            outcomes.append(run(part, out, left))
            print(f"{part.name}: {outcomes[-1].status} in {outcomes[-1].seconds:.0f} s", flush=True)
            log = (out / f"{part.name}.log").read_text(errors="replace")
            for line in log.splitlines()[-part.shown :]:
                print(f"  {line}", flush=True)
        summary = [asdict(outcome) for outcome in outcomes]
        (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    return outcomes


def launch_overhead(target: str) -> int:
    """Print the microseconds of a call on 1024 elements, for our kernel and for torch."""
    import torch  # noqa: PLC0415 - only this part needs it
    import tvm_ffi  # noqa: PLC0415 - the environment is looked at without it

    kernel = te_select.compile(te_select.Workload((1024,), (1024,), (1024,)), target)
    cond = torch.randint(2, (1024,), device="cuda", dtype=torch.bool)
    then, else_, out = (torch.rand(1024, device="cuda") for _ in range(3))
    a, b, c, d = (tvm_ffi.from_dlpack(tensor) for tensor in (cond, then, else_, out))
    exported = tvm_ffi.load_module(kernel.path).get_function(kernel.workload.name)
    masked = te_select.compile(te_select.Workload((1024,), (1024,), ()), target)
    calls: dict[str, Callable[[], object]] = {
        "te-select, tvm-ffi tensors, exported function": lambda: exported(a, b, c, d),
        "te-select, tvm-ffi tensors": lambda: kernel(a, b, c, out=d),
        "te-select, torch tensors, out=": lambda: kernel(cond, then, else_, out=out),
        "te-select, torch tensors": lambda: kernel(cond, then, else_),
        "te-select, torch tensors and a scalar, out=": lambda: masked(cond, then, 1.0, out=out),
        "torch.where, out=": lambda: torch.where(cond, then, else_, out=out),
        "torch.where": lambda: torch.where(cond, then, else_),
    }
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(25):
        for name, call in calls.items():
            torch.cuda.synchronize()
            call()
            start = time.perf_counter()
            for _ in range(200):  # fewer than a queue holds, so that no call waits for the device
                call()
            samples[name].append((time.perf_counter() - start) / 200)
    for name, seconds in samples.items():
        print(f"{name}: {sorted(seconds)[len(seconds) // 2] * 1e6:.2f} us")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/gpu"), help="where logs go")
    parser.add_argument("--parts", default="all", help="a list, such as tests,bench; default all")
    parser.add_argument("--suite", default="baselines", help="to bench and tune; or default")
    parser.add_argument("--only", default="*", help="a glob: only these of the suite")
    parser.add_argument("--target", default="cuda", help="default: the GPU of this machine")
    parser.add_argument("--trials", type=int, default=16, help="configs to tune a workload with")
    parser.add_argument("--seconds", type=float, default=TOTAL_SECONDS, help="for all parts")
    parser.add_argument("--launch-overhead", metavar="TARGET", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.launch_overhead:
        return launch_overhead(given.launch_overhead)
    out: Path = given.out.resolve()
    known = parts(out, given.target, given.suite, given.only, given.trials)
    names = [part.name for part in known]
    wanted = names if given.parts == "all" else given.parts.split(",")
    if unknown := sorted(set(wanted) - set(names)):
        parser.error(f"--parts names {unknown[0]!r}; expected some of {', '.join(names)}")
    out.mkdir(parents=True, exist_ok=True)
    missing = driver.missing()
    outcomes = run_all([part for part in known if part.name in wanted], out, given.seconds, missing)
    print(f"logs and figures: {out}")
    without_device = missing and set(wanted) - {"environment"}
    if without_device:
        print(f"gpu.py: error: nothing was run on a GPU: {missing}", file=sys.stderr)
    return int(bool(without_device) or any(outcome.status == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
