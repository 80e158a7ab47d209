"""Programs and scripts of Python in processes of their own."""

import os
import subprocess
import sys
import textwrap


def ended(
    *command,
    cwd=None,
    env=os.environ,
    timeout=600,
    **variables,
):
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


def output(*command, **how):
    """What a program prints, which must neither fail nor hang nor crash."""
    done = ended(*command, **how)
    assert done.returncode == 0, (done.returncode, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def python(code, *words, **how):
    """What a script of Python prints, which must neither fail nor hang nor crash."""
    return output(sys.executable, "-c", textwrap.dedent(code), *words, **how)
