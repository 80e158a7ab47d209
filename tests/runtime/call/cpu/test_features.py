"""The features of this CPU, of which libraries and Python ask the CPU itself."""

import os
import shutil
import sys

from pytest import skip

from te_select.runtime.call.cpu import features
from te_select.schedules.cpu import isa
from tests.support import ROOT, ended, flat
from tests.support.machines import on_x86_64
from tests.support.runtime_standin import build


@on_x86_64
def test_cpu_has_what_the_system_lists():
    asked = {*isa.X86_64.features.values(), "cheese"}
    shown = features.cpu_info()["flags"].split()
    assert asked - set(features.missing(asked)) == asked & set(shown)


@on_x86_64
def test_library_is_loaded_where_proc_says_nothing(tmp_path):
    """As in sandboxes: /proc/cpuinfo is empty."""
    if shutil.which("unshare") is None:
        skip("needs unshare")
    needs = sorted({"pni", "sse4_2"} & features.features())
    path = build([flat(8)], tmp_path / "mask.so", cpu_features=needs)
    hide = "mount --bind /dev/null /proc/cpuinfo || exit 77; exec "
    code = f'import te_select; te_select.load("{path}"); print(len(open("/proc/cpuinfo").read()))'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hide + '"$@"', "sh"]
    done = ended(*command, sys.executable, "-c", code, env={**os.environ, "PYTHONPATH": str(ROOT)})
    if done.returncode == 77 or "unshare" in done.stderr:
        skip(done.stderr)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
