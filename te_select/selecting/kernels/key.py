"""The names of the family's entries in the cache."""

from te_select.backends import build_key
from te_select.errors import ArtifactError
from te_select.errors.catching import caught
from te_select.records import doubt, folders
from te_select.files import cache

WHOLE = "all"


def entry(part: str) -> str:
    """The file name of a part that is built here, for this CPU, by the records that there are."""
    try:
        given = folders.default_folders(folders.FAMILY)
        records = folders.contents(given, without=doubt.is_line_unsure)
    except caught(OSError, ArtifactError):  # a build says what is wrong with them
        records = []
    return cache.name_of(f"where_{part}", build_key.digest(*records))


def holds(name: str, part: str) -> bool:
    """Whether an entry of whatever digest holds a part."""
    digest = name.removesuffix(".so").rpartition("-")[2]
    return name in (cache.name_of(f"where_{each}", digest) for each in (part, WHOLE))
