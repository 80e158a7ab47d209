"""The manifest of a library: read beside it, and edited in it."""

import json

from te_select.runtime.artifact import embedded

_BULKY = ("versions", "components")  # what may be left out for the room of an edit


def beside(path):
    """The manifest in the file beside a library."""
    return json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))


def edit_inside(path, before, after, *, seal=True):
    """Change a text of the manifest in a library, and seal it again or not."""
    old, new = before.encode(), after.encode()
    start, text = _manifest(path.read_bytes())
    assert old in text
    _put(path, start, text, text.replace(old, new, 1), seal=seal)


def edit_fields(path, change):
    """Change the fields of the manifest in a library, and seal it again."""
    start, text = _manifest(path.read_bytes())
    fields = json.loads(text)
    for name in _BULKY:
        fields[name] = type(fields.get(name, []))()
    change(fields)
    new = json.dumps(fields, separators=(",", ":")).replace(":", ": ", 1).encode()
    _put(path, start, text, new)
    return path


def _manifest(image):
    start, size = embedded._place(image, "it")
    return start, image[start : start + size]


def _put(path, start, old, new, *, seal=True):
    assert len(new) <= len(old), "the manifest may not grow"
    image = path.read_bytes()
    image = image[:start] + new.ljust(len(old)) + image[start + len(old) :]
    path.write_bytes(embedded.seal(image) if seal else image)
