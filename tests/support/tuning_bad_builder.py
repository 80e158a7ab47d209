"""A build worker that builds the fault that a config names as "fault", or else a right kernel."""

import os
import signal
import time
from pathlib import Path

from te_select.backends.cpu import link
from te_select.base.scratch import NoRoomError
from te_select.compiler.build import versions
from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, Manifest
from te_select.tuning.measuring import build_worker
from tests.support.runtime_standin import HERE, compile_c, linked
from tests.support.tuning_candidates import INSIDE

KERNELS = {
    "crash": "*(volatile int*)8 = 1;",
    "hang": f"""
    const char* inside = getenv("{INSIDE}");
    if (inside) fclose(fopen(inside, "w"));
    for (;;) __asm__ volatile("");""",
    "nothing": ";",
    "outside": "((char*)out)[-1] = 0;",
    "abort": "abort();",
}


class Worker(build_worker.Worker):
    def build_candidate(self, candidate, path):
        fault = candidate.config.pop("fault", None)
        if fault is None:
            return super().build_candidate(candidate, path)
        if fault == "build crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "build hang":
            if inside := os.environ.get(INSIDE):
                Path(inside).touch()
            time.sleep(1000)
        if fault == "no room":
            raise NoRoomError("no temporary folder can be made: No space left on device")
        if fault == "build memory":
            bytearray(2 * build_worker.MEMORY)
        path.parent.mkdir()
        source = path.with_suffix(".c")
        source.write_text(
            "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
            "int32_t bad(void* cond, void* then, void* else_, void* out, int64_t stream) {"
            f"{KERNELS[fault]} return 0; }}"
        )
        compiled = compile_c(source, path.with_suffix(".o"), "-c")
        record = KernelRecord(candidate.workload, Choice(candidate.config, "default", ""))
        target = {"name": candidate.target, **HERE, "cpu_features": []}
        manifest = Manifest((record,), target, versions())
        entries = {candidate.workload: [link.Version("bad")]}
        linked([compiled], entries, {"x86-64": ()}, manifest, path)
        return {}
