"""Programs and scripts of Python in processes of their own."""

import functools
import importlib.util
import os
import subprocess
import tempfile
from pathlib import Path
from sys import executable
from textwrap import dedent


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


def loaded(path):
    """The module in a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def _scratch():
    return tempfile.TemporaryDirectory(prefix="te-select-test-")


def new_folder():
    """A folder that goes with this process."""
    return Path(tempfile.mkdtemp(dir=_scratch().name))


def open_files():
    """How many files this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


def names(folder):
    """What lies in a folder."""
    return {path.name for path in folder.iterdir()}


def output(*command, **how):
    """What a program prints, which must neither fail nor hang nor crash."""
    done = ended(*command, **how)
    assert done.returncode == 0, (done.returncode, done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def script(code, *words, **how):
    """How a script of Python ends."""
    return ended(executable, "-c", dedent(code), *words, **how)


def python(code, *words, **how):
    """What a script of Python prints, which must neither fail nor hang nor crash."""
    return output(executable, "-c", dedent(code), *words, **how)
