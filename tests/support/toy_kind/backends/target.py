"""The one target ``toy``; see `te_select.backends.targets`."""

from dataclasses import dataclass

from tvm.target import Target

from te_select.backends.targets import ResolvedTarget

FIELDS = ("kind",)


@dataclass(frozen=True)
class ToyTarget(ResolvedTarget):
    kind: str = "toy"


def takes(text):
    return text == "toy"


def suggestions(text):
    return ["toy"] if text.startswith("to") else []


def from_name(_text):
    return ToyTarget("toy", Target({"kind": "c"}))


def check_fields(_fields):
    pass


def from_fields(_fields, _tvm_target):
    return from_name("toy")
