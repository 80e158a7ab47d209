"""libte_select_torch.so: te_select::where in programs that have torch, but not te-select."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import filelock
import pytest

from tests.support.where_calls import ROOT

pytestmark = pytest.mark.slow
PACKAGE = ROOT / "examples" / "torch" / "package.py"
PROGRAM = ROOT / "examples" / "torch" / "packaged.cc"
PARTS = ("w1", "w2", "w4", "w8", "w16", "w4_rows05")
BUILD = """
    import sys
    from te_select.operator import family

    parts = {name: members for name, members in family.parts().items() if name in sys.argv[2:]}
    family.parts = lambda: parts
    path, sys.argv = sys.argv[1], ["te-select"]
    from typer.testing import CliRunner
    from te_select.cli.verbs import app

    done = CliRunner().invoke(app, ["torch", "build", "-o", path])
    assert done.exit_code == 0, done.output
    print(done.output)
"""


def python(program, *arguments, torch=True):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if not torch:
        hidden = str(ROOT / "tests" / "support" / "no_torch")
        environment["PYTHONPATH"] = os.pathsep.join((hidden, str(ROOT)))
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library with all runs, built once for all processes of the tests."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    path = folder / "torch" / "libte_select_torch.so"
    path.parent.mkdir(exist_ok=True)
    with filelock.FileLock(folder / "torch.lock"):
        if not path.exists():
            text = python(BUILD, path, *PARTS)
            assert text.startswith(f"{path}: te_select::where for native, ")
    return path


@pytest.fixture(autouse=True)
def torch_is_there():
    pytest.importorskip("torch")


def test_process_without_torch_is_told_what_is_missing(library):
    text = python(
        """
        import sys
        import te_select

        try:
            te_select.load(sys.argv[1])
        except te_select.ArtifactError as error:
            print(error)
        """,
        library,
        torch=False,
    )
    assert "cannot be loaded: libtorch_cpu.so: cannot open shared object file" in text


CALLS = """
    import itertools, sys, warnings
    import torch

    torch.ops.load_library(sys.argv[1])
    where = torch.ops.te_select.where
    assert not any(name.startswith("te_select") for name in sys.modules)

    def names_of(*args):
        with torch.autograd.profiler.profile() as profile:
            found = where(*args)
        return found, {event.name for event in profile.function_events}

    def check(*args, by_kernel=True):
        found, names = names_of(*args)
        expected = torch.where(*args).resolve_conj().resolve_neg()
        assert found.dtype is expected.dtype and found.shape == expected.shape, args
        assert found.is_contiguous()
        raw = [each.contiguous().reshape(-1).view(torch.uint8) for each in (found, expected)]
        assert torch.equal(*raw), args
        assert ("aten::where" not in names) is by_kernel, (args, names)

    torch.manual_seed(0)
    TYPES = (
        "bool uint8 int8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 "
        "complex64 complex128").split()
    SHAPES = (
        ((8, 16), (8, 16), (8, 16)), ((8, 1), (8, 16), ()), ((16,), (4, 1, 16), (8, 1)),
        ((), (), ()), ((0, 3), (3,), (1, 3)), ((100, 1), (100, 5), (1, 5)))

    def drawn(shape, dtype):
        if dtype is torch.bool:
            return torch.rand(shape) < 0.5
        size = torch.empty(0, dtype=dtype).element_size()
        return torch.randint(0, 256, (*shape, size), dtype=torch.uint8).view(dtype).reshape(shape)

    for name, shapes in itertools.product(TYPES, SHAPES):
        cond = drawn(shapes[0], torch.bool)
        x, y = (drawn(shape, getattr(torch, name)) for shape in shapes[1:])
        if name.startswith("complex"):
            x, y = x.nan_to_num(), y.nan_to_num()
        check(cond, x, y)
    c, x, y = torch.rand(6, 4) < 0.5, torch.randn(6, 4), torch.randn(4, 6).t()
    check(c, y, y * 2)
    check(c[::2], x[::2], y[1::2])
    check(c.t(), x.t().expand(3, 4, 6), torch.randn(3, 1, 6))
    z = torch.randn(6, 4, dtype=torch.complex64)
    check(c, z.conj(), z)
    check(c, z.conj().imag, x)
    check(c, x, y.double(), by_kernel=False)
    check(c, y, 2 * y.double(), by_kernel=False)
    check(torch.rand((1,) * 62 + (6, 4)) < 0.5, x, x)
    for bad in ((c, x, torch.ones(3)), (x, x, x), (c, x, torch.ones(5, 6, 3))):
        messages = []
        for function in (where, torch.where):
            try:
                function(*bad)
            except RuntimeError as error:
                messages.append(str(error).splitlines()[0])
        assert len(messages) == 2 and messages[0] == messages[1], messages
    # It has no gradient, which torch says, and te_select.torch has.
    leaf = x.clone().requires_grad_()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        where(c, leaf, y).sum().backward()
    assert any("an autograd kernel was not registered" in str(each.message) for each in said)
    # Nor has it a tangent, which is invisible to it: it refuses work in forward mode.
    def refused(function):
        try:
            function()
        except RuntimeError as error:
            return "has no forward-mode derivative" in str(error)
        return False

    forward = torch.autograd.forward_ad
    for _ in range(3):
        with forward.dual_level():
            dual = forward.make_dual(x, x)
            assert refused(lambda: where(c, dual, y)) and refused(lambda: where(c, y, dual))
        assert forward.unpack_dual(dual).tangent is None  # nothing keeps the level
        check(c, dual, y)
    assert refused(lambda: torch.func.jvp(lambda x: where(c, x, y), (x,), (x,)))
    assert refused(lambda: torch.func.jacfwd(lambda x: where(c, x, y))(x))
    check(c, x, y)
    print("right")
"""


def test_every_type_and_layout_is_as_by_torch(library):
    assert python(CALLS, library) == "right\n"


@pytest.mark.parametrize("first", ["library", "python"])
def test_python_and_the_library_live_together(library, first):
    text = python(
        """
        import sys, warnings
        import torch

        warnings.simplefilter("error", UserWarning)
        if sys.argv[2] == "library":
            torch.ops.load_library(sys.argv[1])
        import te_select
        from te_select.torch import where
        if sys.argv[2] == "python":
            torch.ops.load_library(sys.argv[1])
        c, y = torch.rand(5, 7) < 0.5, torch.randn(7)
        x = torch.randn(5, 7, requires_grad=True)
        expected = torch.where(c, x, y)
        assert torch.equal(where(c, x, y), expected)
        assert torch.equal(te_select.where(c, x, y), expected)
        where(c, x, y).sum().backward()
        assert torch.equal(x.grad, c.float())
        for opaque in (True, False):
            compiled = torch.compile(
                lambda c, x, y: where(c, x * 2, y, opaque=opaque) + 1, backend="aot_eager")
            assert torch.equal(compiled(c, x, y), torch.where(c, x * 2, y) + 1)
        many = torch.stack([x.detach()] * 3)
        found = torch.func.vmap(lambda x: torch.ops.te_select.where(c, x, y))(many)
        assert torch.equal(found[1], expected)
        out = torch.empty(5, 7)
        torch.ops.te_select.where.out(c, x.detach(), y, out=out)
        assert torch.equal(out, expected)
        print("right")
        """,
        library,
        first,
    )
    assert text == "right\n"


def test_packaged_model_runs_in_a_program_without_python(library, tmp_path):
    import torch

    model, program = tmp_path / "model.pt2", tmp_path / "packaged"
    expected = python(PACKAGE.read_text(), model)
    root = Path(torch.__file__).parent
    includes = [f"-I{root}/include", f"-I{root}/include/torch/csrc/api/include"]
    folders = [str(library.parent), str(root / "lib")]
    libraries = ["-l:libte_select_torch.so", "-ltorch", "-ltorch_cpu", "-lc10"]
    found = [f"-L{folder}" for folder in folders] + [f"-Wl,-rpath,{folder}" for folder in folders]
    subprocess.run(
        ["g++", "-std=c++20", str(PROGRAM), *includes, *found, "-Wl,--no-as-needed", *libraries,
         "-o", str(program)],
        check=True,
    )  # fmt: skip
    done = subprocess.run([program, model], capture_output=True, text=True, check=False, env={})
    assert (done.returncode, done.stdout) == (0, expected), done.stderr
    needed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    assert "libpython" not in needed.stdout
