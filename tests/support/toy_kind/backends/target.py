"""The one target ``toy``; see `te_select.backends.targets`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm.target import Target

from te_select.backends.targets import ResolvedTarget

FIELDS = ("kind",)


@dataclass(frozen=True)
class ToyTarget(ResolvedTarget):
    kind: str = "toy"


def takes(text: str) -> bool:
    return text == "toy"


def suggestions(text: str) -> list[str]:
    return ["toy"] if text.startswith("to") else []


def from_name(_text: str) -> ToyTarget:
    return ToyTarget("toy", Target({"kind": "c"}))


def check_fields(_fields: Mapping[str, Any]) -> None:
    pass


def from_fields(_fields: Mapping[str, Any], _tvm_target: Target) -> ToyTarget:
    return from_name("toy")
