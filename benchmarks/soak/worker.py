"""The process in which rounds run. If it dies in a round, a new process runs the next one.

``python -m soak.worker MODULE NOTE`` reads one seed per line, and answers each with a line of JSON.
"""

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

from soak.found import Found


def main() -> None:
    """Run rounds until no more seeds come."""
    module, note = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # prints of a library must not be read as answers
    attack = importlib.import_module(module).attack
    for line in sys.stdin:
        found = Found(Path(note))
        try:
            attack(int(line), found)
        except Exception as error:  # of what is attacked, or of the attack: both are to be seen
            traceback.print_exc()
            found.failed(f"the attack itself ended: {type(error).__name__}: {error}")
        print(json.dumps([found.counts, found.failures]), file=answers, flush=True)


if __name__ == "__main__":
    main()
