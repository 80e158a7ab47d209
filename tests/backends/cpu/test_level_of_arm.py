"""A level outside x86-64: what it adds is asked of the CPU, by a row that only this test has."""

import json

from tests.support.edited_copy import run_with

ROW = ' Level("aarch64:sve", vector_bytes=64, unroll=4, features={"sve": "sve"}, '
ROW += 'needs=frozenset({"sve"})),'
EDITS = {"schedules/cpu/isa.py": (ROW, '),\n    of_models=spelt(\n        "neon')}
ASK = """
import json
from te_select.backends.targets import resolve
from te_select.schedules.cpu import isa
said = {}
for name in ("aarch64", "aarch64:sve", "aarch64:neoverse-v1"):
    target = resolve(name)
    said[name] = ["sve" in target.cpu_features, "sve" in isa.features_of(target.tvm)]
print(json.dumps(said))
"""


def test_feature_is_used_and_asked_for_if_the_level_has_it(tmp_path):
    assert json.loads(run_with(EDITS, tmp_path, ASK)) == {
        "aarch64": [False, False],
        "aarch64:sve": [True, True],
        "aarch64:neoverse-v1": [False, False],
    }
