"""The profile of this machine, without a library: its C files are compiled and asked."""

import ctypes

from te_select.backends.c_compiler import open_library
from te_select.runtime import c
from te_select.runtime.call.cpu import profile

_SOURCES = ("cpu_model.c", "profile.c", "processors.c", "sysfs.c")
_ROOM = 1 << 14  # bytes; more than a te_select_machine has


def of_this_machine() -> profile.Profile:
    """The profile that a library finds here, with the user's file and ``TE_SELECT_PROFILE``.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    find = open_library([c.FOLDER / "cpu" / name for name in _SOURCES]).te_select_find_machine
    find.restype = ctypes.c_char_p
    text: bytes = find(ctypes.create_string_buffer(_ROOM))
    return profile.Profile.parse(text.decode(errors="replace"))
