"""The commands of the README, pasted in order into a shell in a fresh clone with a fresh home."""

import pytest

from tests.support import fresh
from tests.support.documents import CLONE, SLOW, blocks

IN_AN_ENVIRONMENT = '"$PYTHON" -m venv ../fresh && source ../fresh/bin/activate'


def pasted():
    """The commands in their order, and then Python's blocks, which need what those install."""
    found = [block for block in blocks("README.md") if block.mark in ("", CLONE, SLOW)]
    commands = [f"echo '{b.place}'\n{b.text}" for b in found if b.language == "sh"]
    programs = [b.text for b in found if b.language == "python"]
    programs = [f"python - <<'END OF BLOCK'\n{text}END OF BLOCK\n" for text in programs]
    return "\n".join([IN_AN_ENVIRONMENT, *commands, *programs])


@pytest.mark.long
def test_commands_of_the_readme_work_in_a_fresh_clone(tmp_path):
    environment = fresh.environment_of(tmp_path / "home")
    status, output = fresh.shell(pasted(), fresh.clone_to(tmp_path), environment)
    assert status == 0, output
    assert "verified  bit for bit against NumPy" in output  # make demo
    assert "32 elements selected from C++" in output
