"""What a compiler has made from sources of te-select: kept in the cache, made once on a machine."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from te_select.backends import build_key
from te_select.runtime.artifact import cache


def bytes_of(what: str, facts: Sequence[str | bytes], make: Callable[[], bytes]) -> bytes:
    """Take what was made before from the cache, or make it and keep it.

    Parameters
    ----------
    what
        What it is, as an identifier.
    facts
        What it depends on, besides what every build depends on (`build_key.digest`).
    make
        Makes it.

    Returns
    -------
    bytes
        What ``make`` returned, now or before. An entry of the cache that is damaged is made again.
    """
    name = cache.name_of(what, build_key.digest(*facts))
    found = cache.read(name) or b""
    size = hashlib.sha256().digest_size
    if hashlib.sha256(found[size:]).digest() == found[:size]:
        return found[size:]
    data = make()
    cache.keep(name, hashlib.sha256(data).digest() + data)
    return data
