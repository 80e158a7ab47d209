"""Compares what a reader tells of a model with the rows of a table."""

import pytest

from te_select import ModelError


def check(nodes, *expected):
    """There is a node for each row, with the attributes that the row names."""
    rows = zip(nodes, expected, strict=True)
    found = [{name: getattr(node, name) for name in row} for node, row in rows]
    assert found == list(expected), found


def check_refused(read, given, folder, said):
    """The reader refuses a file in one line with these words."""
    with pytest.raises(ModelError) as caught:
        read(given, folder)
    text = str(caught.value)
    assert text.startswith(str(folder)) and said in text and "\n" not in text.strip(), text
