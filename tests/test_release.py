"""The wheel: it is made from the sdist, and works where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import textwrap
from pathlib import Path

import pytest

import te_select

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="no make"),
]
ROOT = Path(__file__).resolve().parent.parent
LEVEL = "x86-64-v2"
USE = """
    import os, sys
    import numpy as np
    import te_select

    assert "site-packages" in te_select.__file__, te_select.__file__
    cond, x = np.arange(5000) % 3 == 0, np.arange(5000, dtype="f4")
    assert (te_select.where(cond, x, -1) == np.where(cond, x, -1)).all()
    assert te_select.where.stats().calls == 1, te_select.where.stats()
    assert "tvm" not in sys.modules
    assert not os.path.exists(os.environ["TE_SELECT_CACHE_DIR"])
    rows = np.ones((300, 5), "f8")
    assert te_select.where(cond[:300, None], rows, 0).sum() == 500
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of the sdist and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    programs = Path(sys.executable).parent
    words = [
        "wheel",
        f"LEVELS={LEVEL}",
        f"DIST={folder}",
        f"WORK={folder}/work",
        f"BIN={programs}",
        f"BUILT={folder}",
    ]
    made = subprocess.run(
        ["make", "-C", str(ROOT), *words], capture_output=True, text=True, check=False
    )
    if "Could not find a version" in made.stderr + made.stdout:
        pytest.skip("no package index can be reached")
    assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def installed(made, tmp_path_factory):
    """Python of an environment that has the wheel, and sees the packages of this one."""
    folder = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin/python"
    (wheel,) = made.glob("*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True)
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    packages = Path(found.stdout.strip(), "zz_others.pth")
    packages.write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_where_of_a_wheel_needs_no_compiler_and_builds_nothing(installed, tmp_path):
    cache = tmp_path / "cache"
    environment = {"PATH": "", "TE_SELECT_CACHE_DIR": str(cache), "HOME": str(tmp_path)}
    run = subprocess.run(
        [installed, "-c", textwrap.dedent(USE)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr


def test_wheel_compiles_verifies_and_shows_its_version(installed, tmp_path):
    shell = installed.with_name("te-select")
    shapes = ("--cond", "4,1", "--then", "4,5", "--else", "")
    path = tmp_path / "mask.so"
    for words in (("compile", *shapes, "-o", path), ("verify", path), ("logs", "list")):
        run = subprocess.run(
            [shell, *words], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert run.returncode == 0, run.stderr
    version = subprocess.run([shell, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"te-select {te_select.__version__}\n"


def test_sdist_has_the_sources_and_no_machine_code(made):
    (sdist,) = made.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
    assert any(name.endswith("schedules/cpu/schedule.py") for name in names)
    assert any(name.endswith("runtime/cpu/pool.c") for name in names)
    assert not [name for name in names if name.endswith(".so")]
