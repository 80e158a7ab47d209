"""What tests share."""

from pathlib import Path

from tests.support.programs import *  # noqa: F403
from tests.support.workloads import *  # noqa: F403

ROOT = Path(__file__).resolve().parents[2]
"""The folder of the repository."""


def text_of(path):
    """What a file of the repository holds."""
    return (ROOT / path).read_text()
