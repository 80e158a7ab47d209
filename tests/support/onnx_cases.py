"""The node tests of the onnx package: small models with inputs and expected outputs."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One test: a model, its input arrays by name, and its first outputs."""

    name: str
    model: Any
    feeds: dict[str, Any]
    outputs: list[Any]


def node_cases() -> Iterator[Case]:
    """All node tests; they take some ten seconds to be made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ONNX computes its data, infinities and NaN included
        from onnx.backend.test.loader import load_model_tests

        tests = load_model_tests(kind="node")
    for test in tests:
        model, (given, wanted) = _of_test(test)
        names = [info.name for info in model.graph.input]
        pairs = zip(names, given, strict=False)
        yield Case(test.name, model, dict(pairs), list(wanted))


def _of_test(test: Any) -> tuple[Any, tuple[list[Any], list[Any]]]:
    if test.model is not None:
        return test.model, test.data_sets[0]
    import onnx  # an older release has the tests as files

    folder = Path(test.model_dir)
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    infos = {"input": model.graph.input, "output": model.graph.output}
    given, wanted = (
        [_array(data / f"{kind}_{i}.pb", info) for i, info in enumerate(infos[kind])]
        for kind in ("input", "output")
    )
    return model, (given, wanted)


def _array(path: Path, info: Any) -> np.ndarray | None:
    import onnx

    if not path.exists() or not info.type.HasField("tensor_type"):
        return None
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    return onnx.numpy_helper.to_array(proto)
