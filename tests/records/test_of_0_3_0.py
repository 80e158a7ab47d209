"""What te-select 0.3.0 wrote is read, as the shipped records are; what 0.2 wrote is refused."""

import pytest

from te_select import ArtifactError
from te_select.records import log
from te_select.records.folders import SHIPPED
from te_select.runtime.artifact import manifest
from tests.support import ROOT

FILES = ROOT / "tests/support/of_0_3_0"
LOGS = [FILES, *(path.parent for path in SHIPPED.glob("*/sessions.json"))]


@pytest.mark.parametrize("folder", LOGS, ids=lambda folder: folder.name)
def test_every_line_is_a_record_as_it_was_written(folder):
    found = log.read(folder)
    assert found.entries and not found.damaged
    assert not any(entry.edited for entry in found.entries)


def test_manifest_is_read_and_that_of_0_2_is_refused():
    text = (FILES / "manifest.json").read_bytes()
    (kernel,) = manifest.parse(text, "it")[0].kernels
    assert kernel.at("x86-64-v2").config == {**kernel.best.config, "vector_bytes": 16}
    for old in ("0.1.9", "0.2.0"):
        with pytest.raises(ArtifactError, match=f"it is of te-select {old}; export it again"):
            manifest.parse(text.replace(b"0.3.0", old.encode()), "it")
