"""``python benchmarks/soak``: long attacks on te-select."""

import signal
import sys
from pathlib import Path

# Use the source tree of this file, even if te_select is installed.
sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (1, 2)]

from soak.command import main  # noqa: E402 - it is found from here on

for interrupt in (signal.SIGINT, signal.SIGTERM):  # a shell may have them ignored in the background
    signal.signal(interrupt, signal.default_int_handler)
sys.exit(main())
