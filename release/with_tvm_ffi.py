"""Checks the runtime with the oldest and the newest apache-tvm-ffi of its range.

Run ``python release/with_tvm_ffi.py FOLDER`` in an environment of ``make install``. Each release is
installed into the folder. A process that finds it first, and no TVM, loads and calls a library.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
from split import TVM_FFI

import te_select

CHECK = """
    import sys, warnings

    warnings.simplefilter("error")
    sys.modules["tvm"] = None  # as where only the runtime is installed
    import numpy as np, tvm_ffi
    import te_select
    from te_select.verify.verify import verify_kernel

    assert tvm_ffi.__file__.startswith(sys.argv[2]), tvm_ffi.__file__
    kernel = te_select.load(sys.argv[1])
    assert all(result.passed for result in verify_kernel(kernel))
    cond, x = np.arange(4) % 3 == 0, np.arange(32, dtype="f4").reshape(4, 8)
    expected = np.where(cond[:, None], x, 7)
    out = np.empty_like(x)
    assert kernel(cond[:, None], x, np.float32(7), out=out) is out and (out == expected).all()
    cond = cond[:, None]
    for wrong, kind in (((cond[0], x, 7), ValueError), ((cond, x.astype("f8"), 7), TypeError)):
        try:
            kernel(*wrong)
        except kind as error:
            assert isinstance(error, te_select.SelectError), error
        else:
            raise AssertionError(f"{wrong} was taken")
    function = tvm_ffi.load_module(sys.argv[1])[kernel.workload.name]
    out[:] = 0
    function(cond, x, np.asarray(7, "f4"), out)
    assert (out == expected).all()
    assert (te_select.where(cond, x, 7) == expected).all()
    assert te_select.where.stats().calls == 1, te_select.where.stats()
    print("right with", tvm_ffi.__version__, flush=True)
"""


def main() -> None:
    """Build a library, and check it with each release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the releases and a library go")
    folder = parser.parse_args().folder.resolve()
    library = te_select.export(
        [te_select.Workload((4, 1), (4, 8), (), "float32")], folder / "rows.so"
    )
    te_select.where([True], np.float32(1), np.float32(2))  # builds kernels into the cache
    oldest = TVM_FFI.partition(",")[0].replace(">=", "==")
    for name, wanted in (("oldest", oldest), ("newest", TVM_FFI)):
        packages = folder / name
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade")
        subprocess.run([*pip, "--target", str(packages), wanted], check=True)
        before = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-c", textwrap.dedent(CHECK), str(library), str(packages)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": before})


if __name__ == "__main__":
    main()
