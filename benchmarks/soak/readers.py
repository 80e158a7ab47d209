"""Model files as a stranger may write them: OpenVINO IR and oneDNN graphs, wrong in every field.

A file is read, or it is refused in one line, in time and memory that are bounded.
"""

import importlib
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
from soak import hostile
from soak.found import Found

_MEMORY = 2 << 30  # bytes more than the process has; the largest file that is read takes 1 GiB
_SECONDS = 60  # of one file; most take some ms
_LONGEST = 2000  # characters of a message
_WRITERS = "onednn_graph", "openvino_ir"
_LARGEST = 100_000  # bytes of a file of the corpus; parsing larger ones would be most of the work
# These write files for tests, so that they have no types.
onednn, openvino = (importlib.import_module(f"tests.support.{name}") for name in _WRITERS)
_RELU = onednn.op("ReLU", [onednn.tensor(4, [4, 5])], [onednn.tensor(1, [4, 5])])
_GRAPH = {"graph": [_RELU, onednn.select([4, 5], [4, 5], [4, 5], auto_broadcast="numpy")]}
_NET = openvino.select("?,5", "?,5", "?,5", auto_broadcast="numpy")
_BODY = _NET[_NET.index("<layers>") : _NET.index("</net>")]
_MAP = '<port_map><input external_port_id="0" internal_layer_id="0"/></port_map>'
_BODIES = f"{_MAP}<then_body>{_BODY}</then_body><else_body>{_BODY}</else_body>"
_IR = _NET.replace("</layers>", openvino.layer(4, "If", extra=_BODIES) + "</layers>")
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
