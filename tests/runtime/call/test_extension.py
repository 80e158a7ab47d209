"""How much memory the extension may keep: by the variable, and by what the system says."""

import pytest

from te_select.runtime.call import extension


@pytest.mark.parametrize(
    "wish, told, most",
    [("77", "2\n", 77), ("0", "", 0), ("", None, 400), ("", "0\n", 400), ("", "2\n", 0)],
)
def test_most_memory_is_that_of_the_variable_or_the_system(monkeypatch, tmp_path, wish, told, most):
    monkeypatch.setenv(extension.VARIABLE, wish)
    monkeypatch.setattr(extension, "_OVERCOMMIT", tmp_path / "overcommit_memory")
    if told is not None:
        extension._OVERCOMMIT.write_text(told)
    assert extension.most_kept() == most << 20


def test_wrong_value_of_the_variable_is_named(monkeypatch):
    monkeypatch.setenv(extension.VARIABLE, "all")
    said = "TE_SELECT_KEEP_MEMORY is 'all'; expected a whole number of MiB, 0 for none"
    with pytest.warns(RuntimeWarning, match=said):
        extension.most_kept()
