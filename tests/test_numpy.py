"""te_select.numpy: NumPy's names, of which five are ours; NumPy and what others know of it stay."""

import inspect
import pickle
import sys

import numpy
from pytest import importorskip, mark, raises, skip

import te_select
import te_select.numpy as np
from te_select import where
from tests.support import ROOT, ended, python

OURS = ["copyto", "putmask", "select", "where"]
EXTENDED = {"select", "where"}
UNITS = """
one, five = of(1, "m"), of({}, "{}")
lengths = np.arange(3.0) * one
print(repr(np.where([True, False, True], lengths, five)))
print(repr(np.select([[True, False, True]], [lengths], five)))
for write in (lambda a: np.putmask(a, [True, False, True], five),
              lambda a: np.copyto(a, five, where=[True, False, True])):
    written = np.arange(3.0) * one
    write(written)
    print(repr(written))
"""
LIBRARIES = {
    "astropy": ("from astropy.units import Quantity as of", UNITS.format(5, "cm")),
    "unyt": ("from unyt import unyt_quantity as of", UNITS.format(0.05, "m")),
    "xarray": (
        "import pandas, xarray",
        """
letters = xarray.DataArray(pandas.Categorical(["a", "b", "a"]), dims="x")
print(letters.where(letters == "a").values.tolist())
print(xarray.where(letters == "a", letters, letters).values.tolist())
""",
    ),
    "awkward": (
        "import awkward",
        """
lists = awkward.Array([[1.0, 2.0], [3.0]])
print(np.where(lists > 1, lists, 0).tolist())
""",
    ),
}
"""For each, its import and what is done with it."""
OLD, NEW = "import numpy as np", "import te_select.numpy as np"


@mark.parametrize("is_first", [True, False])
@mark.parametrize("name", LIBRARIES)
def test_library_finds_numpys_functions_in_its_tables(name, is_first):
    importorskip(name)
    imported, use = LIBRARIES[name]
    found, expected = (
        python("\n".join([imported, of_numpy] if is_first else [of_numpy, imported]) + use)
        for of_numpy in (NEW, OLD)
    )
    assert found == expected and found.strip()


def test_names_are_numpys_and_five_are_ours():
    ours = [name for name in numpy.__all__ if getattr(np, name) is not getattr(numpy, name)]
    assert sorted(ours) == sorted([*OURS, "ma"])
    assert all(getattr(np, name) is getattr(te_select, name) for name in ours)
    assert (dir(np), np.__all__, np.__version__) == (dir(numpy), numpy.__all__, numpy.__version__)
    assert numpy.where is not where and te_select.numpy is np


def test_import_needs_no_tvm_and_submodules_stay_lazy():
    script = """
import sys
import te_select.numpy as np
assert "tvm" not in sys.modules
assert np.polynomial is sys.modules["numpy.polynomial"] and np.random.rand(3).shape == (3,)
from te_select.numpy import linalg, float32, ma
assert ma.where.__module__ == "te_select.ma" and ma.array([1]).mask is ma.nomask
assert linalg is sys.modules["numpy.linalg"]
"""
    assert python(script) == ""


@mark.parametrize("name", ["float_", "nonsense"])
def test_name_that_numpy_lacks_is_its_error(name):
    with raises(AttributeError) as expected:
        getattr(numpy, name)
    with raises(AttributeError) as found:
        getattr(np, name)
    assert str(found.value) == str(expected.value)


def test_submodule_is_not_imported_a_second_time():
    with raises(ModuleNotFoundError, match="is not a package"):
        import te_select.numpy.linalg  # noqa: F401


def test_types_are_numpys_for_mypy(tmp_path):
    importorskip("mypy")
    code = """
import numpy
import te_select.numpy as np
ones = np.ones(3)
reveal_type(np.where(ones > 0, ones, 0, out=ones))
reveal_type(np.where(ones > 0)[0].dtype)
reveal_type(np.select([ones > 0], [ones], out=None))
reveal_type(np.linalg.norm(ones))
reveal_type(np.ma.where(ones > 0, np.ma.masked, ones))
np.putmask(ones, ones > 0, 1.0)
np.where.stats().calls, np.random.default_rng(0), np.__version__
np.nonsense
"""
    (tmp_path / "own.py").write_text(code)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "own.py")
    done = ended(*mypy, cwd=tmp_path, MYPYPATH=ROOT)
    said = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    revealed = [line.split('"')[1] for line in said if "Revealed" in line]
    assert [each.partition("[")[0] for each in revealed] == [
        "numpy.ndarray", "numpy.dtype", "numpy.ndarray", "numpy.floating", "Any"]  # fmt: skip
    assert "float64" in revealed[0] and "float64" in revealed[2]
    assert [line for line in said if "error:" in line] == [
        'error: Module has no attribute "nonsense"  [attr-defined]'
    ]


@mark.parametrize("name", OURS)
def test_function_looks_like_numpys(name):
    ours, theirs = getattr(te_select, name), getattr(numpy, name)
    found = list(inspect.signature(ours).parameters.values())
    try:
        expected = list(inspect.signature(theirs).parameters.values())
    except ValueError:
        skip("this NumPy tells no signatures")
    if name in EXTENDED:
        assert found.pop().name == "out"
    alike = [(each.name, each.kind, each.default) for each in found]
    assert alike == [(each.name, each.kind, each.default) for each in expected]
    assert inspect.isroutine(ours) and inspect.isroutine(theirs)
    assert (ours.__module__, ours.__name__) == ("te_select", name)
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_where_in_a_class_is_a_method_as_numpys():
    class Own(numpy.ndarray):
        ours = where
        theirs = numpy.where

    cond = numpy.array([True, False]).view(Own)
    assert cond.ours(1, 2).tolist() == cond.theirs(1, 2).tolist() == [1, 2]
    assert Own.ours is where
