"""``python benchmarks/soak``: long attacks on te-select."""

import sys
from pathlib import Path

# The tree that this file lies in, installed or not.
sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (1, 2)]

from soak.command import main  # noqa: E402 - it is found from here on

sys.exit(main())
