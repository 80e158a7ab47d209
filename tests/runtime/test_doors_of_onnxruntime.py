"""A session of ONNX Runtime selects as NumPy does, or refuses in words of its own."""

from pytest import importorskip, mark

from tests.support.oracle.cases import CASES, WALKS
from tests.support.oracle.comparison import pairs, same

importorskip("onnxruntime", minversion="1.24")
importorskip("onnx")

from tests.support.oracle import doors_of_onnxruntime as doors


@mark.parametrize("door, case", pairs(doors.DOORS, [*CASES, *WALKS]))
def test_session_selects_as_numpy_or_refuses(oracle_library, door, case):
    same(case, door, oracle_library)
