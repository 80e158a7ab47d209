"""Asks TVM's RPC tracker for servers; every wait has a limit."""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from tvm.rpc import base

from te_select.errors import TuningError

ANSWER_SECONDS = 10.0  # a tracker answers at once, but resolving its name may take seconds
_LONGEST_ANSWER = 1 << 24  # bytes; a server takes a hundred of them
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
        keys = [str(info["key"]).partition(":")[2] for info in self._summary()["server_info"]]
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
        with self._connect() as connection:
            try:
                base.sendjson(connection, [base.TrackerCode.REQUEST, self.key, "", 1])
                while not select.select([connection], [], [], _POLL)[0]:
                    if not wanted():
                        return None
                host, port, match = self._answer(connection)
            except (OSError, ValueError, struct.error) as error:
                raise self._lost(error) from error
        return str(host), int(port), str(match)

    def __str__(self) -> str:
        """Host and port."""
        host, port = self._address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _summary(self) -> dict[str, Any]:
        with self._connect() as connection:
            try:
                base.sendjson(connection, [base.TrackerCode.SUMMARY])
                summary: dict[str, Any] = self._answer(connection)
            except (OSError, ValueError, struct.error) as error:
                raise self._lost(error) from error
        return summary

    def _connect(self) -> socket.socket:
        try:
            connection = socket.create_connection(self._address, ANSWER_SECONDS)
        except OSError as error:
            raise self._lost(error) from error
        try:
            connection.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
            (magic,) = struct.unpack("<i", base.recvall(connection, 4))
            if magic != base.RPC_TRACKER_MAGIC:
                raise ValueError("what answers is no RPC tracker")
        except (OSError, ValueError) as error:
            connection.close()
            raise self._lost(error) from error
        return connection

    def _answer(self, connection: socket.socket) -> Any:
        deadline = time.monotonic() + ANSWER_SECONDS
        (size,) = struct.unpack("<i", _received(connection, 4, deadline))
        if not 0 <= size <= _LONGEST_ANSWER:
            raise ValueError(f"its answer has {size} bytes")
        code, value = json.loads(_received(connection, size, deadline))
        if code != base.TrackerCode.SUCCESS:
            raise ValueError(f"it answered {code!r}")
        return value

    def _lost(self, error: Exception) -> TuningError:
        return TuningError(
            f"the RPC tracker {self} does not answer: {error}; expected "
            "python -m tvm.exec.rpc_tracker to run there"
        )


def _received(connection: socket.socket, size: int, deadline: float) -> bytes:
    """Receive ``size`` bytes before ``deadline``, in seconds of the monotonic clock."""
    data = bytearray()
    while len(data) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"its answer took more than {ANSWER_SECONDS:g} s")
        connection.settimeout(left)
        part = connection.recv(size - len(data))
        if not part:
            raise ValueError("it closed the connection")
        data += part
    return bytes(data)
