"""Asks TVM's RPC tracker for servers."""

import socket
import struct
from typing import Any

from tvm.rpc import base

from te_select.errors import TuningError

ANSWER_SECONDS = 10.0  # a tracker answers at once, but resolving its name may take seconds
# Host and port of a tracker.
Address = tuple[str, int]


def servers(address: Address, key: str) -> int:
    """How many servers are registered under a key.

    Raises
    ------
    TuningError
        If the tracker does not answer, or no server is registered under the key.
    """
    told = ask(address, base.TrackerCode.SUMMARY)["server_info"]
    keys = [str(info["key"]).partition(":")[2] for info in told]
    if found := keys.count(key):
        return found
    first = "python -m tvm.exec.rpc_server --tracker ... --key ... to run on each machine"
    expected = f"one of {', '.join(sorted(set(keys)))}" if keys else first
    raise TuningError(
        f"no server has the key {key!r} at the RPC tracker {address[0]}:{address[1]}; expected "
        f"{expected}"
    )


def free_server(address: Address, key: str) -> tuple[str, int, str]:
    """Wait for a free server: its host and port, and the key that it expects of its client."""
    host, port, match = ask(address, base.TrackerCode.REQUEST, key, "", 1, seconds=None)
    return str(host), int(port), str(match)


def ask(address: Address, *request: Any, seconds: float | None = ANSWER_SECONDS) -> Any:
    """The tracker's answer to a request of TVM's protocol; raises TuningError if there is none."""
    magic = struct.pack("<i", base.RPC_TRACKER_MAGIC)
    try:
        with socket.create_connection(address, ANSWER_SECONDS) as connection:
            connection.sendall(magic)
            if base.recvall(connection, len(magic)) != magic:
                raise ValueError("what answers is no RPC tracker")
            connection.settimeout(seconds)
            base.sendjson(connection, request)
            code, value = base.recvjson(connection)
        if code != base.TrackerCode.SUCCESS:
            raise ValueError(f"it answered {code!r}")
    except (OSError, ValueError, TypeError, struct.error) as error:
        raise TuningError(
            f"the RPC tracker {address[0]}:{address[1]} does not answer: {error}; expected "
            "python -m tvm.exec.rpc_tracker to run there"
        ) from error
    return value
