"""A knob is declared once; checks, the space, records, configs by hand and the page follow."""

import dataclasses
import inspect
import re

import tvm_ffi
from pytest import mark, raises

from te_select import ArgumentError, Workload
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.schedules import leaf
from te_select.schedules.cpu import schedule as cpu
from te_select.schedules.cpu.span import Span
from te_select.schedules.cuda import schedule as cuda
from te_select.schedules.cuda.span import Span as CudaSpan
from te_select.schedules.knobs import check, knob, of
from te_select.tuning.space import Space
from tests.support import ROOT, flat

KINDS = mark.parametrize(
    "rules, target",
    [(cpu, resolve("x86-64-v3")), (cuda, resolve("cuda:sm_90"))],
)


def add_toy(monkeypatch, rules, values, **methods):
    """Let the configs of a kind have one knob more."""
    toy = "toy", int, knob(values, default=0)
    larger = dataclasses.make_dataclass(
        "Larger", [toy], bases=(rules.Config,), frozen=True, namespace=methods
    )
    default_config = rules.default_config
    monkeypatch.setattr(rules, "Config", larger)
    monkeypatch.setattr(
        rules, "default_config", lambda *given: larger(**vars(default_config(*given)))
    )


@KINDS
def test_new_knob_makes_configs_of_its_own_in_every_kind(rules, target, monkeypatch):
    """Nothing but its declaration says that it has an effect."""
    add_toy(monkeypatch, rules, (0, 3, 5))
    configs = Space(flat(64), target).configs
    assert {config.toy for config in configs} == {0, 3, 5}
    older = {name: int(value) for name, value in vars(configs[0]).items() if name != "toy"}
    assert leaf.config_from(rules.Config, older).toy == 0


def test_knob_may_need_a_feature_of_the_target(monkeypatch):
    """A toy that needs sm_90 is never tried for sm_80, and refused by hand."""
    before = cuda.Config.checked

    def checked(self, pattern, target=None):
        if self.toy and target is not None and target.attrs["arch"] != "sm_90":
            raise ValueError("toy needs sm_90")
        return before(self, pattern, target)

    add_toy(monkeypatch, cuda, (0, 1), checked=checked)
    older, newer = resolve("cuda:sm_80"), resolve("cuda:sm_90")
    assert {config.toy for config in Space(flat(64), older).configs} == {0}
    assert {config.toy for config in Space(flat(64), newer).configs} == {0, 1}
    with raises(ArgumentError, match="toy=1 cannot be followed: toy needs sm_90"):
        schedule(flat(64), older, knobs={"toy": 1})


@mark.parametrize(
    "values, words",
    [
        ((16, 32, 64), "16, 32 or 64"),
        ((0, 1), "0 or 1"),
        ((False, True), "a boolean, true or false"),
        (range(1, 1 << 40), r"positive and below 2\*\*40"),
        (range(-1, 1 << 31), r"-1, by the machine, or not negative and below 2\*\*31"),
    ],
)
def test_values_of_a_knob_are_said_in_words(values, words):
    assert re.fullmatch(words, knob(values).metadata["knob"].expected)


SPANS = [
    Span(4, "o", "f", "i", 3, 32, 1, True, True, end_to_end=True),
    CudaSpan(8, "o", "f", "p", True, False),
]


@mark.parametrize("target", ["x86-64-v3", "cuda:sm_90"])
def test_same_config_and_element_width_make_the_same_function(target):
    shape = (33, 65)
    first, *others = (
        schedule(Workload(shape, shape, (65,), dtype), resolve(target))
        for dtype in ("float32", "float32", "int32", "uint32")
    )
    config = dataclasses.asdict(first.config)
    others.append(schedule(first.workload, resolve(target), None, config))
    assert all(tvm_ffi.structural_equal(first.func, each.func) for each in others)


@mark.parametrize("span", SPANS, ids=lambda span: span.symbol)
def test_symbol_of_a_span_holds_every_parameter(span):
    for name, value in vars(span).items():
        other = "s" if isinstance(value, str) else not value if type(value) is bool else value + 1
        assert dataclasses.replace(span, **{name: other}).symbol != span.symbol, name


@KINDS
def test_default_and_all_that_is_tried_are_values(rules, target):
    pattern = access_pattern(flat(1 << 20))
    default = rules.default_config(pattern, target.tvm)
    check(default)
    for name, tried in rules.space(pattern, target.tvm).items():
        assert getattr(default, name) in tried
        assert all(value in of(default)[name].values for value in tried)


def table(config):
    """The rows of a page: name, values and meaning of each knob."""
    meanings = dict(re.findall(r"^(\w+)\n    (.+(?:\n    .+)*)", inspect.getdoc(config), re.M))
    rows = []
    for name, declared in of(config).items():
        values = declared.values
        listed = declared.expected if isinstance(values, range) else ", ".join(map(str, values))
        rows.append(f"    | `{name}` | {listed} | {' '.join(meanings[name].split())} |\n")
    return "".join(rows).replace("``", "`")


@mark.parametrize("config", [cpu.Config, cuda.Config])
def test_page_on_tuning_has_the_knobs_as_they_are_declared(config, update_golden):
    page = ROOT / "docs/tuning.md"
    text = page.read_text()
    rows = table(config)
    first = f"    | `{next(iter(of(config)))}` |"
    if update_golden:
        start = text.index(first)
        end = text.index("\n\n", start) + 1
        page.write_text(text[:start] + rows + text[end:])
    assert rows in page.read_text()
