"""The choices of a kernel's levels, in full and in short."""

import json

import pytest

from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, Manifest, parse
from tests.support import flat_and_scalar
from tests.support.runtime_standin import HERE

BEST = Choice({"lanes": 16, "leaf": 0}, "tuned:x", "measured")


@pytest.mark.parametrize(
    "choice",
    [
        BEST,
        Choice({"lanes": 4, "leaf": 0}, "tuned:x", "measured"),
        Choice({"lanes": 16, "leaf": 0}, "default", ""),
        Choice({"lanes": 16, "leaf": 0, "more": None}, "tuned:x", "measured"),
        Choice({"lanes": 16}, "tuned:x", "measured"),
        Choice({}, "default", "none was near"),
    ],
)
def test_what_is_said_of_a_choice_after_another_is_read_again(choice):
    said = choice.to_json(BEST)
    assert Choice.parse(said, BEST) == choice
    assert Choice.parse(choice.to_json(), BEST) == choice
    assert Choice.parse(choice.to_json()) == choice


def test_only_what_differs_is_said():
    assert BEST.to_json(BEST) == {}
    other = Choice({"lanes": 4, "leaf": 0}, "tuned:x", "measured")
    assert other.to_json(BEST) == {"config": {"lanes": 4, "leaf": 0}}


def test_short_manifest_says_what_the_full_one_says():
    levels = {f"v{n}": Choice({"lanes": 2**n, "leaf": 0}, "default", "") for n in (2, 3)}
    record = KernelRecord(flat_and_scalar(4), BEST, levels)
    target = {"name": "v2,v3,v4", **HERE, "cpu_features": []}
    target["levels"] = {name: [] for name in ("v2", "v3", "v4")}
    whole = Manifest((record,), target, {})
    for short in (False, True):
        text = json.dumps(whole.to_json("0" * 64, short=short)).encode()
        assert parse(text, "it")[0] == whole
