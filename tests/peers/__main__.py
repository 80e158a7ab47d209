"""Run the tests that come with NumPy and its neighbours, with te-select's functions and without.

Only what fails with them alone counts. What ``known.json`` lists, with its reason, is a known
difference; any other ends with exit code 1, as does a library of whose calls kernels served none.
With ``--compare`` each call is made by both, compared, and repeated with larger operands.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from json import dumps, loads
from os import environ, pathsep
from pathlib import Path

from tests.peers.both import PROFILE

HERE = Path(__file__).parent
KNOWN = loads((HERE / "known.json").read_text())
CALLS = re.compile(r"\b(np|numpy|xp)\.(where|select|copyto|putmask)\(")
LIBRARIES = {  # where the tests are, and the keywords of those that run
    "numpy": (["numpy._core.tests.test_multiarray", "numpy.lib", "numpy.ma"], ""),
    "pandas": (["pandas.tests"], "where or mask or case_when or fillna"),
    "xarray": (["xarray.tests"], ""),
    "dask": (["dask.array"], ""),
    "scipy": (["scipy"], ""),
    "torch": ([str(HERE / "torch_opinfo.py")], ""),
}
NEEDED = {"torch": ("torch", "expecttest")}  # by tests, where it is more than the library
AGAIN = 100  # tests that are run a second time, because some fail now and then


def paths(name, keyword):
    """The files with tests of a module or package, of SciPy's those that call the functions."""
    if name.endswith(".py"):
        return [Path(name)]
    spec = importlib.util.find_spec(name)
    if not spec.submodule_search_locations:
        return [Path(spec.origin)]
    folder = Path(spec.submodule_search_locations[0])
    if name == "scipy":
        return [each for each in sorted(folder.iterdir()) if each.is_dir() and _calls(each)]
    if not keyword:
        return [folder]
    words = re.compile(keyword.replace(" or ", "|"))
    files = sorted(folder.rglob("test_*.py"))
    without = (file for file in files if not words.search(f"{file}{file.read_text()}"))
    return [folder, *(f"--ignore={file}" for file in without)]


def _calls(folder):
    """Whether a package of SciPy calls one of the functions itself."""
    files = (file for file in folder.rglob("*.py") if "tests" not in file.parts)
    return any(CALLS.search(file.read_text()) for file in files)


def home(library):
    """The folder that ids of its tests start from, above which no conftest.py counts."""
    own = LIBRARIES[library][0][0].endswith(".py")
    return HERE if own else Path(importlib.util.find_spec(library).origin).parents[1]


def run(library, mode, tests, keyword, arguments):
    """What tests come to, as the plug-in reports it; empty if pytest crashed."""
    root = home(library)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        config = Path(folder, "pytest.ini")
        config.write_text("[pytest]\n")
        variables = {
            "PEERS": mode,
            "PEERS_IMPORT": library,
            "PEERS_REPORT": str(report),
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
            "PYTHONHASHSEED": "0",  # workers order parameters alike
            "PYTHONPATH": pathsep.join([str(HERE.parents[1]), environ.get("PYTHONPATH", "")]),
        }
        if mode == "compare":
            variables["TE_SELECT_PROFILE"] = PROFILE
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.peers.plugin"]
        command += ["-p", "no:cacheprovider", "--confcutdir", root, "-c", config, "--rootdir", root]
        command += [
            "--tb=short",
            "--continue-on-collection-errors",
            "--timeout=600",
            "--hypothesis-seed=0",
        ]
        command += ["-m", "not slow and not network", "-k", keyword, *arguments, *tests]
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            env={**environ, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if report.exists():
            return loads(report.read_text())
    print(f"{library}, {mode}: exit code {done.returncode}\n{done.stdout[-3000:]}", file=sys.stderr)
    return {}


def fails_alone(plain, ours):
    """The tests that do not come to what they come to with NumPy's functions."""
    passed = (test for test, outcome in plain["tests"].items() if outcome == "passed")
    broken = (test for test, outcome in ours["tests"].items() if outcome == "failed")
    wrong = [test for test in passed if ours["tests"].get(test) != "passed"]
    wrong += [test for test in broken if plain["tests"].get(test) != "failed"]
    return list(dict.fromkeys(wrong))


def reason_of(library, difference):
    """Why a difference is known, or None. A test's name stands for all its parameters."""
    for name, reason in KNOWN.get(library, {}).items():
        if difference == name or difference.startswith((f"{name}[", f"{name}: ")):
            return reason
    return None


def examine(library, tests, keyword, options):
    """The counts of a library, its differences with their reasons, and what is wrong."""
    parallel = ["-n", str(options.processes)]
    ours = run(library, "compare" if options.compare else "ours", tests, keyword, parallel)
    plain = ours if options.compare else run(library, "plain", tests, keyword, parallel)
    if not ours or not plain:
        return {"wrong": ["pytest crashed"]}
    found = ours["differences"] if options.compare else fails_alone(plain, ours)
    known = {each: reason for each in found if (reason := reason_of(library, each))}
    new = [each for each in found if each not in known]
    if new and not options.compare:
        picked = [home(library) / test for test in new[:AGAIN]]
        second = [run(library, mode, picked, "", ["-n", "0"]) for mode in ("plain", "ours")]
        if all(second):
            new = [each for each in fails_alone(*second) if each in new] + new[AGAIN:]
    wrong = [f"{each}\n{ours['failures'].get(each, '')}" for each in new]
    counts = ours["counts"]
    if not counts.get("calls"):
        wrong.append("kernels have served no call")
    if options.compare and not counts.get("compared"):
        wrong.append("no call was compared")
    outcomes = list(ours["tests"].values())
    tests = {kind: outcomes.count(kind) for kind in ("passed", "failed", "skipped")}
    return {"tests": tests, "calls": counts, "left": ours["left"], "known": known, "wrong": wrong}


def show(library, found):
    """Print what a library came to."""
    numbers = {**found.get("tests", {}), **found.get("calls", {})}
    print(f"{library}: {', '.join(f'{count:,} {name}' for name, count in numbers.items())}")
    for reason in dict.fromkeys(found.get("known", {}).values()):
        print(f"  known, {list(found['known'].values()).count(reason)}: {reason}")
    for each in found["wrong"]:
        print(f"  WRONG: {each}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("--only", default=",".join(LIBRARIES), help="libraries, or modules of them")
    parser.add_argument(
        "--compare", action="store_true", help="make each call by both, and compare"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    report = {}
    for name in options.only.split(","):
        library = name.partition(".")[0]
        if library not in LIBRARIES:
            parser.error(f"{name!r} is not of {', '.join(LIBRARIES)}")
        needed = NEEDED.get(library, (library,))
        missing = [each for each in needed if importlib.util.find_spec(each) is None]
        if missing:
            report[name] = {"missing": missing, "wrong": []}
            print(f"{name} is left out: {', '.join(missing)} is missing", file=sys.stderr)
            continue
        modules, keyword = LIBRARIES[library]
        modules = [name] if name != library else modules
        tests = [path for module in modules for path in paths(module, keyword)]
        report[name] = examine(library, tests, keyword, options)
        if not options.json:
            show(name, report[name])
    if options.json:
        print(dumps(report, indent=2))
    return any(found["wrong"] for found in report.values())


if __name__ == "__main__":
    sys.exit(main())
