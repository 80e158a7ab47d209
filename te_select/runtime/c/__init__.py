"""The C half: sources that are compiled into every library, and into the extension."""

from pathlib import Path

FOLDER = Path(__file__).parent
