"""Faults of one expression in sources of C, of which a variable of the program chooses one."""

import os
import re


def holds_in_child(check):
    """Whether a check says True in a child of this process, which may die of it."""
    if child := os.fork():
        return os.waitpid(child, 0)[1] == 0
    code = 1
    try:
        code = int(not check())
    finally:
        os._exit(code)


def plant(source, number, fault):
    """A source with a fault: what stands there, with what takes its place in braces."""
    before, right, wrong, after = re.split(r"\{(.*) => (.*)\}", fault)
    assert before + right + after in source, fault
    choice = f"(te_select_fault == {number} ? ({wrong}) : ({right}))"
    return source.replace(before + right + after, before + choice + after)


def plant_all(folder, faults):
    """Plant faults, each behind the name of its file, and number them from 1 on."""
    for number, fault in enumerate(faults, 1):
        name, _, place = fault.partition(": ")
        path = folder / name
        path.write_text(plant(path.read_text(), number, place))
