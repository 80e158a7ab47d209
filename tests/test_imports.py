"""Test modules are imported where a package of others is missing; what needs it is skipped."""

from pathlib import Path

import pytest

from tests.support.programs import python

ROOT = Path(__file__).parents[1]
OPTIONAL = (
    "cuda",
    "defusedxml",
    "jax",
    "matplotlib",
    "nvidia",
    "onnx",
    "onnxruntime",
    "openvino",
    "torch",
)
# A child for each package, so that the packages of others are imported once.
IMPORT_ALL = """
import contextlib, importlib, os, sys
from pathlib import Path
import hypothesis, numpy, pytest, tvm
for package in sys.argv[1:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(package)
files = [*Path("tests").rglob("conftest.py"), *Path("tests").rglob("test_*.py")]
for package in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    for name in [package, *sys.modules]:
        if f"{name}.".startswith(f"{package}."):
            sys.modules[name] = None
    for file in files:
        try:
            importlib.import_module(".".join(file.with_suffix("").parts))
        except pytest.skip.Exception:
            pass
        except Exception as error:
            print(f"without {package}, {file} cannot be imported: {error}")
    print("without", package, flush=True)
    os._exit(0)
"""


@pytest.mark.slow
def test_modules_are_imported_without_each_package():
    said = python(IMPORT_ALL, *OPTIONAL, cwd=ROOT, PYTHONPATH=str(ROOT))  # torch is not hidden
    assert said.splitlines() == [f"without {package}" for package in OPTIONAL]
