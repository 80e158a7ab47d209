"""The manifest of a library: read beside it, and edited in it."""

from json import dumps, loads

from te_select.runtime.artifact import embedded

_BULKY = ("versions", "components")  # what may be left out for the room of an edit


def beside(path):
    """The manifest in the file beside a library."""
    return loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def edit_fields(path, change):
    """Change the fields of the manifest in a library, and seal it again."""
    image = path.read_bytes()
    start, size = embedded._place(image, "it")
    end = start + size
    fields = loads(image[start:end])
    for name in _BULKY:
        fields[name] = type(fields.get(name, []))()
    change(fields)
    new = dumps(fields, separators=(",", ":")).replace(":", ": ", 1).encode()
    assert len(new) <= size, "the manifest may not grow"
    path.write_bytes(embedded.seal(image[:start] + new.ljust(size) + image[end:]))
    return path
