"""Model files as a stranger may write them: OpenVINO IR and oneDNN graphs, wrong in every field.

A file is read, or it is refused in one line, in time and memory that are bounded.
"""

import json
import os
import random
import resource
import signal
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import te_select
from soak.found import Found
from tests.support import hostile

_MEMORY = 2 << 30  # bytes more than the process has; the largest file that is read takes 1 GiB
_SECONDS = 60  # of one file; most take some ms
_LONGEST = 2000  # characters of a message
_LARGEST = 100_000  # bytes of a file of the corpus; parsing larger ones would be most of the work
_TENSORS: list[dict[str, Any]] = [
    {"id": i, "dtype": dtype, "shape": [4, 5], "stride": [5, 1], "layout_type": "strided"}
    for i, dtype in enumerate(("boolean", "f32", "f32", "f32", "f32"))
]
_GRAPH = {
    "graph": [
        {"kind": "ReLU", "attrs": {}, "inputs": _TENSORS[1:2], "outputs": _TENSORS[4:]},
        {
            "kind": "Select",
            "attrs": {"auto_broadcast": {"type": "string", "value": "numpy"}},
            "inputs": [_TENSORS[0], _TENSORS[4], _TENSORS[2]],
            "outputs": _TENSORS[3:4],
        },
    ]
}
_LAYERS = "".join(
    f'<layer id="{i}" name="{name}" type="Parameter" version="opset1"><data shape="?,5" '
    f'element_type="{element}"/><output><port id="0" precision="{precision}"><dim>-1</dim>'
    "<dim>5</dim></port></output></layer>"
    for i, (name, element, precision) in enumerate(
        (("c", "boolean", "BOOL"), ("t", "f32", "FP32"), ("e", "f32", "FP32"))
    )
)
_PORTS = "".join(f'<port id="{i}"><dim>-1</dim><dim>5</dim></port>' for i in range(3))
_EDGES = "".join(
    f'<edge from-layer="{i}" from-port="0" to-layer="3" to-port="{i}"/>' for i in range(3)
)
_NET = (
    f'<layers>{_LAYERS}<layer id="3" name="s" type="Select" version="opset1"><data '
    f'auto_broadcast="numpy"/><input>{_PORTS}</input><output><port id="3" precision="FP32">'
    f"<dim>-1</dim><dim>5</dim></port></output></layer>{{}}</layers><edges>{_EDGES}</edges>"
)
_THEN = _NET.format("")
_ELSE = _NET.format("").replace("Select", "Multiply")
_IF = (
    '<layer id="4" name="if" type="If" version="opset8"><port_map><input external_port_id="0" '
    f'internal_layer_id="0"/></port_map><then_body>{_THEN}</then_body><else_body>{_ELSE}</else_body>'
    "</layer>"
)
_IR = f'<net name="n" version="11">{_NET.format(_IF)}</net>'
Making = Callable[[], bytes]


def attack(seed: int, found: Found, files: int = 1000) -> None:
    """Read so many files."""
    rng = random.Random(seed)
    sources = _sources(rng)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, _too_slow)
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number in range(files):
                suffix = rng.choice(list(sources))
                path = Path(folder, f"model{suffix}")
                path.write_bytes(rng.choice(sources[suffix])())
                resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, most))
                signal.alarm(_SECONDS)
                _read(path, f"file {number}, {suffix}", found)
                signal.alarm(0)
                resource.setrlimit(resource.RLIMIT_AS, before)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, handler)
            resource.setrlimit(resource.RLIMIT_AS, before)


def _read(path: Path, what: str, found: Found) -> None:
    found.doing(what)
    found.tried(f"hostile files {path.suffix}")
    try:
        te_select.read_model(path)
    except te_select.ModelError as error:
        said = str(error)
        if not said.isprintable() or len(said) > _LONGEST:
            found.failed(f"{what}: an error of many lines or characters: {said[:_LONGEST]!r}")
    except Exception as error:  # any other error is a failure
        found.failed(f"{what}: {type(error).__name__}: {error}")


def _too_slow(*_: Any) -> None:
    raise TimeoutError(f"it takes more than {_SECONDS} s")


def _sources(rng: random.Random) -> dict[str, list[Making]]:
    """Functions that make hostile files, of files of our own and of the corpus, by their suffix."""
    xml = [_IR.encode()]
    graphs = [json.dumps(_GRAPH).encode()]
    if corpus := os.environ.get("TE_SELECT_MODELS"):
        for texts, suffix in ((xml, ".xml"), (graphs, ".json")):
            paths = sorted(Path(corpus).glob(f"*/**/*{suffix}"))
            texts += [path.read_bytes() for path in paths if path.stat().st_size < _LARGEST]
    return {
        ".xml": [partial(hostile.xml_text, rng, Tree.fromstring(text)) for text in xml],
        ".json": [partial(hostile.json_text, rng, json.loads(text)) for text in graphs],
    }
