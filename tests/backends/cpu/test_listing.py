"""Assembly as `Kernel.source` shows it: the code, without what is for debuggers."""

import platform
import re
import shutil

import pytest

from te_select.backends.cpu.builder import without_notes
from te_select.backends.targets import resolve
from te_select.compiler import sources
from tests.support import masked_rows, output

# The lines with a dash are for debuggers.
SOURCE = """\
- \t.file\t"TVMMod"
\t.text
kernel:
- .Lfunc_begin0:
- \t.loc\t1 0 0
- \t.cfi_startproc
- .Ltmp0:
\tje\t.Ltmp12
\t.section\t.rodata,"a"
- .Ltmp1:
\t.long\t1
- \t.section\t.debug_info,"",@progbits
- \t.quad\t.Ltmp0
\t.section\t".note.GNU-stack","",@progbits
\t.text
.Ltmp12:
\tretq
.Lfunc_end0:
\t.size\tkernel, .Lfunc_end0-kernel
"""


def test_only_code_data_and_the_labels_in_use_are_left():
    code = "".join(line for line in SOURCE.splitlines(keepends=True) if line[0] != "-")
    assert without_notes(SOURCE.replace("- ", "")) == code


@pytest.mark.parametrize("target", ["x86-64", "x86-64-v4", "aarch64"])
def test_listing_of_a_kernel_is_assembled_to_the_same_code(target, tmp_path):
    text = sources.source(masked_rows(8, 300), target, None, "asm")
    assert not re.search(r"\.loc|\.cfi|\.debug|\.Ltmp\d+:", text)
    triple = resolve(target).triple
    assembler = "as" if triple.startswith(platform.machine()) else f"{triple}-as"
    if shutil.which(assembler) is None:
        pytest.skip(f"no {assembler}")
    (tmp_path / "kernel.s").write_text(text)
    output(assembler, "kernel.s", "-o", "kernel.o", cwd=tmp_path)
