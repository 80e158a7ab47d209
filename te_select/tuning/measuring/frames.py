"""Messages between a measurer and its workers: JSON objects with their length in front."""

from __future__ import annotations

import json
from typing import Any

HEADER = 4  # bytes of the length, big-endian
LONGEST_REASON = 400  # characters; enough for a path and two shapes


def pack(message: dict[str, Any]) -> bytes:
    """Write a message."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(HEADER, "big") + body


def unpack(data: bytes) -> dict[str, Any] | None:
    """Read a message; None if it is not complete."""
    if len(data) < HEADER:
        return None
    end = HEADER + int.from_bytes(data[:HEADER], "big")
    if len(data) < end:
        return None
    message: dict[str, Any] = json.loads(data[HEADER:end])
    return message


def one_line(text: str) -> str:
    """Shorten a text to one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 3] + "..."
