"""Kernels and libraries are pickled and copied as the bytes of their artifacts."""

import copy
import pickle
import subprocess
import sys

import numpy as np
from pytest import mark, raises

from te_select import ArtifactError
from te_select.runtime.artifact import stored
from te_select.runtime.call.loading import load
from tests.support import flat, masked_rows
from tests.support.runtime_standin import build, kernel

W = masked_rows(4, 5)
ARGS = np.array([[1], [0], [0], [1]], bool), np.ones((4, 5), "f4"), np.float32(-1)
WAYS = {"pickle": lambda k: pickle.loads(pickle.dumps(k)), "deepcopy": copy.deepcopy}


@mark.parametrize("way", WAYS)
def test_copy_computes_says_and_exports_the_same(way, tmp_path):
    first = kernel(W)
    second = WAYS[way](first)
    assert second is not first
    assert second(*ARGS).tobytes() == first(*ARGS).tobytes()
    for name in ("workload", "target", "level", "config", "origin", "path"):
        assert getattr(second, name) == getattr(first, name)
    paths = (copied.export(tmp_path / f"{i}.so") for i, copied in enumerate((first, second)))
    assert len({path.read_bytes() for path in paths}) == 1


def test_another_process_loads_the_kernel_without_its_file(tmp_path):
    path = build([W], tmp_path / "mask.so")
    packed = pickle.dumps(load(path))
    path.unlink()
    code = "import pickle, sys; k = pickle.load(sys.stdin.buffer); print(k.workload.name)"
    command = [sys.executable, "-c", f"{code}; assert 'tvm' not in sys.modules"]
    done = subprocess.run(command, input=packed, capture_output=True, check=True)
    assert done.stdout.decode().strip() == W.name


def test_kernel_of_several_takes_only_its_own_record_along(tmp_path):
    library = load(build([W, flat(3)], tmp_path / "lib.so"))
    alone = WAYS["pickle"](library[W.name])
    assert (alone(*ARGS) == library[W.name](*ARGS)).all()
    (record,) = stored.read(alone.export(tmp_path / "x.so")).manifest.kernels
    assert record.workload == W


def test_bytes_that_were_changed_are_refused():
    make, (image, path) = kernel(W).__reduce__()
    spoilt = bytearray(image)
    spoilt[len(image) // 2] ^= 1
    with raises(ArtifactError, match="the SHA-256 differs"):
        make(bytes(spoilt), path)
    with raises(ArtifactError, match="is no ELF file"):
        make(b"", path)
