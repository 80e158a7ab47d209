"""What an RPC tracker answers, and what is none."""

import contextlib
import socket
import threading

from pytest import mark, raises

from te_select import TuningError
from te_select.tuning.fleet.tracker import servers
from te_select.tuning.options import open_measurer

HOST = "127.0.0.1"


@mark.parametrize(
    "keys, said",
    [(["kind", "al:so", "kind"], "one of al:so, kind$"), ([], "python -m tvm.exec.rpc_server")],
)
def test_unserved_key_is_an_error_that_names_those_served(monkeypatch, keys, said):
    told = {"server_info": [{"key": f"server:{key}"} for key in keys]}
    monkeypatch.setattr("te_select.tuning.fleet.tracker.ask", lambda *_: told)
    with raises(TuningError, match=f"'other' at the RPC tracker h:9; expected {said}"):
        servers(("h", 9), "other")
    assert not keys or servers(("h", 9), "kind") == 2


def test_tracker_that_is_not_there_is_an_error():
    with socket.socket() as taken:
        taken.bind((HOST, 0))  # without listening
        port = taken.getsockname()[1]
        with raises(TuningError, match=r"does not answer.*rpc_tracker"):
            open_measurer(f"rpc://{HOST}:{port}/kind")


@mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
def test_what_is_no_tracker_is_an_error(answer, monkeypatch):
    monkeypatch.setattr("te_select.tuning.fleet.tracker.ANSWER_SECONDS", 0.5)
    with socket.create_server((HOST, 0)) as server:

        def serve():
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                if answer is None:
                    connection.recv(1 << 16)
                    connection.recv(1 << 16)  # until the client has given up
                else:
                    connection.sendall(answer)
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        with raises(TuningError, match="does not answer"):
            servers((HOST, server.getsockname()[1]), "kind")
        thread.join()
