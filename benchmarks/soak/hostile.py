"""JSON and XML as a stranger may write them: well formed, and wrong in every field."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any
from xml.etree import ElementTree as Tree

_NUMBERS = (0, 1, -1, 7, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308)
_TEXTS = ("", "x", "-1", "1e9", "?", "...", "0..", "\0", "\x1b[2J", "\ud800", "é" * 300, "9" * 5000)
_DEEP = 100_000
_LONG = 20_000  # elements of a list, or characters of a text
_BOMB = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(9))
_HEADS = (
    f'<!DOCTYPE net [<!ENTITY e0 "ha">{_BOMB}]>',
    '<!DOCTYPE net [<!ENTITY e9 SYSTEM "file:///dev/zero">]>',
    '<!DOCTYPE net SYSTEM "file:///etc/passwd">',
    '<?xml version="1.0" encoding="utf-7"?>',
    '<?xml version="1.0" encoding="no-such"?>',
)


def json_text(rng: random.Random, value: Any) -> bytes:
    """A JSON value with some of its parts replaced, deleted, repeated or exchanged."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 5))):
        places = list(_places(value))
        if not places:
            break
        inside, key = rng.choice(places)
        way = rng.randrange(6)
        if way < 3:
            inside[key] = _value(rng)
        elif way == 3:
            del inside[key]
        elif way == 4:
            other, at = rng.choice(places)
            if at in other if isinstance(other, dict) else at < len(other):
                inside[key] = copy.deepcopy(other[at])
        elif isinstance(inside, list):
            inside[key:key] = [inside[key]] * rng.choice((1, 3, 1000))
            break  # repeated again and again, it would not fit the memory
    text = json.dumps(value, ensure_ascii=rng.random() < 0.8)
    return _spoilt(
        rng, text, ('{"id": 7, "id": ', "[" * _DEEP, '{"a":' * _DEEP, "NaN", "-Infinity")
    )


def xml_text(rng: random.Random, root: Tree.Element) -> bytes:
    """An XML tree with other attributes, texts and tags, and with elements moved about."""
    root = copy.deepcopy(root)
    for _ in range(rng.choice((1, 1, 2, 5))):
        parents = [each for each in root.iter() if len(each)]
        every = list(root.iter())
        one, parent = rng.choice(every), rng.choice(parents or [root])
        way = rng.randrange(9)
        if way < 3 and one.attrib:
            one.set(rng.choice(list(one.attrib)), _text(rng))
        elif way == 3 and one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        elif way == 4:
            one.text = _text(rng)
        elif way == 5:
            one.tag = rng.choice(every).tag
        elif len(parent):
            child = rng.choice(list(parent))
            if way == 6:
                parent.remove(child)
            elif way == 7:
                parent.extend(copy.deepcopy(child) for _ in range(rng.choice((1, 3, 300))))
                break
            else:
                inner = copy.deepcopy(child)
                for _ in range(rng.choice((1, 3, 60))):
                    outer = Tree.Element(child.tag, child.attrib)
                    outer.append(inner)
                    inner = outer
                rng.choice(every).append(inner)
    text = "".join(c for c in Tree.tostring(root, "unicode") if c in "\t\n\r" or c >= " ")
    if rng.random() < 0.1:
        text = rng.choice(_HEADS) + text.replace('name="', 'name="&e9;', 1)
    return _spoilt(rng, text, ("<layer>" * _DEEP, "&e9;", "&#0;", "]]>", "<!--"))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of a JSON value, as what holds it and a key or an index."""
    waiting = [value]
    while waiting:
        inside = waiting.pop()
        keys = list(inside) if isinstance(inside, dict) else range(len(inside))
        for key in keys:
            yield inside, key
            if isinstance(inside[key], dict | list):
                waiting.append(inside[key])


def _value(rng: random.Random) -> Any:
    ways: tuple[Callable[[], Any], ...] = (
        lambda: rng.choice(_NUMBERS),
        lambda: rng.choice(_NUMBERS),
        lambda: _text(rng),
        lambda: rng.choice((None, True, False, [], {}, [[]], {"": {}})),
        lambda: [rng.choice(_NUMBERS)] * rng.choice((1, 3, _LONG)),
        lambda: float(rng.choice(("nan", "inf", "-inf"))),
    )
    return rng.choice(ways)()


def _text(rng: random.Random) -> str:
    return rng.choice((rng.choice(_TEXTS), str(rng.choice(_NUMBERS)), "x" * _LONG))


def _spoilt(rng: random.Random, text: str, inserted: tuple[str, ...]) -> bytes:
    """A text as bytes, now and then cut, or with something put into it."""
    at = rng.randrange(len(text) + 1)
    if rng.random() < 0.05:
        text = text[:at]
    elif rng.random() < 0.15:
        text = text[:at] + rng.choice(inserted) + text[at:]
    return text.encode("utf-8", "surrogatepass")
