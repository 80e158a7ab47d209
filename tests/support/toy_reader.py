"""A reader of a made-up format: each line of a file is the length of a Select's operands."""

from te_select import ModelError, Workload
from te_select.frontends.formats import Format
from te_select.operator.node import ModelNode

TOY = Format(".toy", "a toy (.toy)", f"{__name__}:read_toy", 64, (b"toy",))


def read_toy(file):
    """Read the lengths."""
    lines = file.read().decode().split()[1:]
    try:
        made = [Workload((int(n),), (int(n),), ()) for n in lines]
    except ValueError as error:
        raise ModelError(f"the file is no toy: {error}") from error
    return [
        ModelNode(f"s{i}", f"line#{i}", "Select", "compiled", w, "", "graph input", dtype="float32")
        for i, w in enumerate(made)
    ]
