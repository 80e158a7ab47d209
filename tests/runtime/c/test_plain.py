"""The plain C functions: what they check, and what they say. Called through ctypes, as C would."""

import ctypes
import dataclasses
import threading

import numpy as np
import pytest

from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.workload import Workload
from te_select.runtime.artifact.manifest import c_name
from tests.support.programs import python
from tests.support.runtime_standin import build, manifest

OK, INVALID, CANNOT_RUN = 0, 1, 2
SAME = Workload((3, 4), (3, 4), (3, 4))
NAMED = Workload(("n", 1), ("n", "m"), (), "int16")
ALL = {name: Workload((3, 1), (3, 4), (), name) for name in ELEMENT_TYPES}


def with_c_functions(workloads):
    plain = manifest(workloads)
    kernels = (dataclasses.replace(r, c_function=c_name(r.workload)) for r in plain.kernels)
    return dataclasses.replace(plain, kernels=tuple(kernels))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    workloads = [SAME, NAMED, *ALL.values()]
    folder = tmp_path_factory.mktemp("plain")
    return build(workloads, folder / "lib.so", described=with_c_functions(workloads))


@pytest.fixture(scope="module")
def library(path):
    opened = ctypes.CDLL(str(path))
    opened.te_select_error.restype = ctypes.c_char_p
    return opened


def call(library, workload, *operands, sizes=()):
    """The status, and the message without the kernel's name."""
    pointers = [
        ctypes.c_void_p(a.ctypes.data if isinstance(a, np.ndarray) else a) for a in operands
    ]
    function = library[c_name(workload)]
    status = function(*pointers, *(ctypes.c_int64(size) for size in sizes))
    return status, library.te_select_error().decode().removeprefix(f"{workload.name}: ")


def arrays():
    cond = np.arange(12).reshape(3, 4) % 3 == 0
    then = np.arange(12, dtype="f4").reshape(3, 4)
    return cond, then, -then, np.full((3, 4), 7, "f4")


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES))
def test_every_element_type_is_selected_bit_for_bit(library, name):
    rng = np.random.default_rng(0)
    cond = np.array([[2], [0], [255]], np.uint8)  # any nonzero byte is true
    width = ELEMENT_TYPES[name].width
    then = rng.integers(0, 256, (3, 4, width), np.uint8)
    else_ = rng.integers(0, 256, (width,), np.uint8)
    out = np.zeros_like(then)
    assert call(library, ALL[name], cond, then, else_, out)[0] == OK
    assert out.tobytes() == np.where(cond[..., None] != 0, then, else_).tobytes()


def test_sizes_are_named_dims_in_the_order_of_the_header(library):
    assert NAMED.dim_names == ("m", "n")
    cond, then = np.array([[1], [0]], bool), np.arange(10, dtype="i2").reshape(2, 5)
    out = np.zeros((2, 5), "i2")
    status, _ = call(library, NAMED, cond, then, np.array(-9, "i2"), out, sizes=(5, 2))
    assert status == OK
    assert out.tolist() == [[0, 1, 2, 3, 4], [-9] * 5]


@pytest.mark.parametrize("which", range(4))
def test_null_pointer_to_elements_is_refused(library, which):
    operands = list(arrays())
    before = operands[3].copy()
    names, sizes = ("cond", "then", "else_", "out"), (12, 48, 48, 48)
    operands[which] = None
    status, message = call(library, SAME, *operands)
    expected = f"{names[which]} has a null data pointer; expected {sizes[which]} bytes"
    assert (status, message) == (INVALID, expected)
    assert which == 3 or (operands[3] == before).all()


def test_null_pointers_to_no_elements_are_taken(library):
    assert call(library, NAMED, None, None, np.zeros((), "i2"), None, sizes=(4, 0))[0] == OK


@pytest.mark.parametrize("which", [1, 2, 3])
def test_pointer_that_is_not_aligned_as_its_type_is_refused(library, which):
    operands = list(arrays())
    memory = np.zeros(64, np.uint8)
    operands[which] = memory[(-memory.ctypes.data) % 4 + 2 :]
    status, message = call(library, SAME, *operands)
    assert status == INVALID
    assert message.endswith("; expected an address divisible by 4")


def test_parts_of_a_complex_number_are_aligned_not_the_number(library):
    memory = np.zeros(256, np.uint8)
    aligned = memory[(-memory.ctypes.data) % 16 :]
    for name, off in (("complex64", 4), ("complex128", 8)):
        out, scalar = aligned[off:], np.ones(1, name)
        cond, then = np.zeros((3, 1), bool), np.zeros((3, 4), name)
        assert call(library, ALL[name], cond, then, scalar, out)[0] == OK
        status, message = call(library, ALL[name], cond, then, scalar, aligned[off // 2 :])
        assert status == INVALID and message.endswith(f"divisible by {off}")


def test_overlapping_output_is_refused_unless_it_is_an_input(library):
    cond, then, else_, _ = arrays()
    wanted = np.where(cond, then, else_)
    memory = np.zeros(16, "f4")
    memory[:12] = then.ravel()
    status, message = call(library, SAME, cond, memory[:12], else_, memory[1:])
    assert status == INVALID
    assert message.startswith("out overlaps then; expected memory of its own, or exactly that of")
    assert (memory[:12] == then.ravel()).all()
    assert call(library, SAME, cond, memory[:12], else_, memory[:12])[0] == OK
    assert (memory[:12] == wanted.ravel()).all()
    conds = np.ones(48, bool)
    assert call(library, SAME, conds, then, else_, conds)[1].startswith("out overlaps cond")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((-1, 2), "the size of m is -1; expected 0 or more"),
        ((2, -(2**63)), "the size of n is -9223372036854775808; expected 0 or more"),
        ((2**40, 2**40), "then has too many elements: shape [1099511627776,1099511627776]"),
        ((1, 2**63 - 1), "cond has too many elements: shape [9223372036854775807,1]"),
    ],
)
def test_sizes_that_are_negative_or_too_large_are_refused(library, sizes, message):
    array = np.zeros(64, "i2")
    status, said = call(library, NAMED, array, array, array, array[32:], sizes=sizes)
    assert status == INVALID and said.startswith(message)


def test_memory_beyond_the_address_space_is_refused(library):
    cond, _then, else_, out = arrays()
    status, message = call(library, SAME, cond, 2**64 - 4, else_, out)
    assert status == INVALID and "leads out of the address space" in message


def test_message_is_the_threads_and_outlives_a_good_call(library):
    call(library, SAME, None, None, None, None)
    seen = []
    other = threading.Thread(target=lambda: seen.append(library.te_select_error()))
    other.start()
    other.join()
    assert seen == [b""]
    cond, then, else_, out = arrays()
    status, message = call(library, SAME, cond, then, else_, out)
    assert (status, message) == (OK, "cond has a null data pointer; expected 12 bytes")


def test_error_does_not_wait_for_the_next_call_through_tvm_ffi(path, library):
    from te_select.runtime.call import loading

    kernel = loading.load(path)[SAME.name]
    call(library, SAME, None, None, None, None)
    cond, then, else_, _ = arrays()
    assert (kernel(cond, then, else_) == np.where(cond, then, else_)).all()


def test_kernel_that_fails_cannot_run(tmp_path):
    made = build([SAME], tmp_path / "x.so", status=7, described=with_c_functions([SAME]))
    opened = ctypes.CDLL(str(made))
    opened.te_select_error.restype = ctypes.c_char_p
    assert call(opened, SAME, *arrays()) == (CANNOT_RUN, "the kernel failed")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("TE_SELECT_NUM_THREADS", "x", "TE_SELECT_NUM_THREADS is 'x'; expected a positive"),
        ("TE_SELECT_PROFILE", "y", "TE_SELECT_PROFILE"),
    ],
)
def test_environment_that_is_refused_is_a_status_too(path, name, value, message):
    code = f"""
        import ctypes
        library = ctypes.CDLL({str(path)!r})
        library.te_select_error.restype = ctypes.c_char_p
        cond, data = ctypes.create_string_buffer(12), (ctypes.c_float * 36)()
        at = [ctypes.c_void_p(ctypes.addressof(data) + 48 * k) for k in range(3)]
        print(library[{c_name(SAME)!r}](cond, *at), library.te_select_error().decode())
    """
    assert python(code, **{name: value}).startswith(f"1 {SAME.name}: {message}")
