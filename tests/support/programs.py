"""Programs and scripts of Python in processes of their own."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def ended(
    *command: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] = os.environ,
    timeout: float = 600,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """How a program ends, with these variables beside those of ``env``."""
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**env, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def output(*command: str | Path, **how: Any) -> str:
    """What a program prints, which must neither fail nor hang nor crash."""
    done = ended(*command, **how)
    assert done.returncode == 0, (done.returncode, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def python(code: str, *words: str | Path, **how: Any) -> str:
    """What a script of Python prints, which must neither fail nor hang nor crash."""
    return output(sys.executable, "-c", textwrap.dedent(code), *words, **how)
