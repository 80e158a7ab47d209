"""Asks TVM's RPC tracker for servers; every wait has a limit."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable
from typing import Any

from tvm.rpc import base

from te_select.errors import TuningError

ANSWER_SECONDS = 10.0  # a tracker answers at once, but resolving its name may take seconds
_POLL = 0.2  # seconds between looks at whether a server is still wanted


class Tracker:
    """The servers of one key.

    Parameters
    ----------
    address
        Host and port of the tracker.
    key
        The key under which the servers are registered.
    """

    def __init__(self, address: tuple[str, int], key: str) -> None:
        self.key = key
        self._address = address

    def servers(self) -> int:
        """How many servers are registered under the key.

        Raises
        ------
        TuningError
            If the tracker does not answer, or no server is registered under the key.
        """
        keys = [
            str(info["key"]).partition(":")[2]
            for info in self._ask(base.TrackerCode.SUMMARY)["server_info"]
        ]
        found = keys.count(self.key)
        if not found:
            others = ", ".join(sorted(set(keys)))
            expected = (
                f"one of {others}"
                if others
                else "python -m tvm.exec.rpc_server --tracker ... --key ... to run on each machine "
                "that measures; none has registered under any key"
            )
            raise TuningError(
                f"no server has the key {self.key!r} at the RPC tracker {self}; expected {expected}"
            )
        return found

    def request(self, wanted: Callable[[], bool]) -> tuple[str, int, str] | None:
        """Wait for a free server.

        Parameters
        ----------
        wanted
            Called repeatedly: whether a server is still wanted.

        Returns
        -------
        tuple or None
            The server's host and port, and the key that it expects of its client; None if a server
            is no longer wanted.

        Raises
        ------
        TuningError
            If the tracker does not answer.
        """
        answer = self._ask(base.TrackerCode.REQUEST, self.key, "", 1, wanted=wanted)
        if answer is None:
            return None
        host, port, match = answer
        return str(host), int(port), str(match)

    def __str__(self) -> str:
        """Host and port."""
        host, port = self._address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _ask(self, *request: Any, wanted: Callable[[], bool] | None = None) -> Any:
        """The tracker's answer; None once it is no longer wanted."""
        magic = struct.pack("<i", base.RPC_TRACKER_MAGIC)
        try:
            with socket.create_connection(self._address, ANSWER_SECONDS) as connection:
                connection.sendall(magic)
                if base.recvall(connection, len(magic)) != magic:
                    raise ValueError("what answers is no RPC tracker")
                base.sendjson(connection, request)
                while wanted and not select.select([connection], [], [], _POLL)[0]:
                    if not wanted():
                        return None
                code, value = base.recvjson(connection)
            if code != base.TrackerCode.SUCCESS:
                raise ValueError(f"it answered {code!r}")
        except (OSError, ValueError, TypeError, struct.error) as error:
            raise TuningError(
                f"the RPC tracker {self} does not answer: {error}; expected "
                "python -m tvm.exec.rpc_tracker to run there"
            ) from error
        return value
