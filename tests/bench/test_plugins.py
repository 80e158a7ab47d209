"""Peers that other packages register."""

from json import dumps
from textwrap import dedent

from pytest import fixture, mark

from te_select.bench.cuda.peers import PEERS as CUDA_PEERS
from te_select.bench.peers import PEERS, choose_peers, with_plugins
from tests.support.cli import FLAGS, refused, run, run_json

PEER = """
    from te_select.bench.cuda.peers import CudaPeer
    from te_select.bench.peers import Peer

    class Mine(Peer):
        name = "mine"

        def prepare(self, workload, sets):
            import numpy as np
            def select(each):
                each.out[...] = np.where(each.cond, each.then, each.else_)
            return [lambda each=each: select(each) for each in sets]

    class OnDevice(CudaPeer):
        name = "mine-on-device"

        def prepare(self, workload, sets):
            return []

    class Taken(Mine):
        name = "numpy"

    no_peer = 3
"""
ENTRIES = """
    [te_select.peers]
    mine = my_peers:Mine
    device = my_peers:OnDevice
    taken = my_peers:Taken
    number = my_peers:no_peer
    gone = my_peers:Gone
    twice = my_peers:Mine
"""


@fixture(autouse=True)
def plugin(tmp_path, monkeypatch):
    """A package with peers, as pip would have installed it."""
    (tmp_path / "my_peers.py").write_text(dedent(PEER))
    about = tmp_path / "my_peers-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-peers\nVersion: 1\n")
    (about / "entry_points.txt").write_text(dedent(ENTRIES))
    monkeypatch.syspath_prepend(tmp_path)


def test_plugin_is_a_peer_of_its_kind_of_machine():
    names = [peer.name for peer in with_plugins(PEERS)]
    assert "mine" in names
    assert "mine-on-device" not in names
    assert "mine-on-device" in [peer.name for peer in with_plugins(CUDA_PEERS)]


@mark.parametrize(
    "name, why",
    [
        ("taken", "takes the name numpy"),
        ("number", "is no subclass of Peer"),
        ("twice", "takes the name mine"),
        ("gone", "has no attribute 'Gone'"),
    ],
)
def test_plugin_that_cannot_be_used_is_absent_and_says_why(name, why):
    (peer,) = choose_peers(name, with_plugins(PEERS))
    assert why in peer.available()


def test_bench_measures_a_plugin(tmp_path):
    file = tmp_path / "workloads.json"
    shapes = {"cond_shape": [64], "then_shape": [64], "else_shape": []}
    file.write_text(dumps([{"name": "my mask", **shapes}, shapes]))
    flags = ("bench", "--workloads", file, "--peers", "mine,taken", "--rounds", "1")
    document = run_json(*flags)
    first, second = document["rows"]
    assert (first["name"], first["density"], first["block"]) == ("my mask", 50, 1)
    assert first["wrong"] == {}
    assert second["name"].startswith("select_float32")
    assert "mine" in first["seconds"]
    assert "takes the name numpy" in document["absent"]["taken"]
    assert '"name": "my mask"' in first["command"]


def test_rows_are_lines_where_there_is_no_terminal():
    flags = (*FLAGS, "--rounds", "1", "--density", "0,50")
    result = run("bench", *flags, "--peers", "mine")
    lines = result.stderr.splitlines()
    assert lines[1].startswith("measuring: 1 of 2 steps select_float32")
    assert lines[2].startswith("measuring: 2 of 2 steps select_float32")
    assert " times mine" in lines[2]


@mark.parametrize("name", [3, "", " ", "two\nlines"])
def test_name_of_a_workload_is_a_text_of_one_line(name):
    fields = {"name": name, "cond_shape": [4], "then_shape": [4], "else_shape": []}
    assert "expected a text of one line" in refused("bench", "--workload", dumps(fields))
