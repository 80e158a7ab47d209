"""Where calls decide to store past the cache: on instruction sets whose spans have such stores."""

import subprocess

from pytest import mark, skip

from te_select import ToolchainError
from te_select.backends.c_compiler import compiler_for
from te_select.runtime.c import FOLDER
from te_select.schedules.cpu.isa import ISAS
from tests.support.foreign import emulator

ASKS = """
#include "machine.h"
int main(void) {
  te_select_machine machine = {.threads_per_l3 = 1};
  return te_select_streams_from(&machine, 0, 1) < TE_SELECT_NEVER;
}
"""


@mark.parametrize("isa", ISAS)
def test_decision_stores_past_the_cache_where_spans_can(isa, tmp_path):
    runs = [] if isa == "x86-64" else emulator(isa)
    if runs is None:
        skip(f"needs an emulator of {isa}")
    try:
        compiler = compiler_for(ISAS[isa].triple)
    except ToolchainError as error:
        skip(str(error))
    source = tmp_path / "asks.c"
    source.write_text(ASKS)
    folder = FOLDER / "cpu"
    options = ["-std=gnu11", "-ffunction-sections", "-Wl,--gc-sections", f"-I{folder}"]
    files = [source, folder / "profile.c", "-o", tmp_path / "asks"]
    subprocess.run([*compiler, *options, *files], check=True)
    done = subprocess.run([*runs, tmp_path / "asks"], check=False)
    assert bool(done.returncode) == ISAS[isa].streams
