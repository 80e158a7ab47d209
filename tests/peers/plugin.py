"""A plug-in of pytest: te-select's functions in the place of NumPy's, before tests are collected.

The variable PEERS has the mode: ``plain`` replaces nothing, ``ours`` does, and ``compare`` makes
each call by both. PEERS_IMPORT names the library whose tests run. It is imported first, so that its
tables with NumPy's functions as keys have NumPy's own. PEERS_FUNCTIONS names the module of the
functions. The file PEERS_REPORT gets what the tests came to, and the calls that kernels served.
"""

import json
import sys
from collections import Counter
from importlib import import_module
from os import environ
from pathlib import Path

import numpy as np
import pytest

import te_select
from tests.peers.both import Both

NAMES = ("where", "select", "copyto", "putmask")
OWN = ("te_select", "tests")  # they call NumPy's functions by these names
MESSAGE = 2000  # characters of a failure


def replace(functions):
    """Replace NumPy's functions wherever a module has them: ``{NumPy's: another}``."""
    others = {id(numpy_s): other for numpy_s, other in functions.items()}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in OWN:
            continue
        for key, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in others:
                setattr(module, key, others[id(value)])


class Recorder:
    """What the tests of a process came to, and of its workers."""

    def __init__(self, both):
        self.both = both
        self.tests = {}
        self.failures = {}
        self.counts = Counter()
        self.left = Counter()
        self.differences = []

    def pytest_runtest_logreport(self, report):
        # A test that failed in one phase has failed, whatever its end says.
        counts = report.when == "call" or not report.passed
        if counts and self.tests.get(report.nodeid) != "failed":
            self.tests[report.nodeid] = report.outcome
        if report.failed:
            self.failures[report.nodeid] = str(report.longrepr)[-MESSAGE:]

    def pytest_collectreport(self, report):
        if report.failed:
            self.tests[report.nodeid] = "failed"
            self.failures[report.nodeid] = str(report.longrepr)[-MESSAGE:]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.add(**getattr(node, "workeroutput", {}).get("peers", {}))

    def add(self, counts=(), left=(), differences=()):
        """Add what another process has counted."""
        self.counts.update(counts)
        self.left.update(left)
        self.differences.extend(differences)

    def pytest_sessionfinish(self, session):
        stats = te_select.where.stats()
        counts = {"calls": stats.calls, "elements": stats.elements, "large": stats.large_calls}
        self.add(counts, stats.left)
        self.add(self.both.counts, (), self.both.differences)
        own = {
            "counts": dict(self.counts),  # xdist passes nothing but plain types
            "left": dict(self.left),
            "differences": self.differences,
        }
        output = getattr(session.config, "workeroutput", None)  # of xdist
        if output is not None:
            output["peers"] = own
        else:
            found = {"tests": self.tests, "failures": self.failures, **own}
            Path(environ["PEERS_REPORT"]).write_text(json.dumps(found))


def pytest_configure(config):
    config.pluginmanager.register(Recorder(_BOTH), "peers")


def _start():
    """Replace the functions, as the mode says."""
    import_module(environ["PEERS_IMPORT"])
    module = import_module(environ.get("PEERS_FUNCTIONS", "te_select"))
    ours = {getattr(np, name): getattr(module, name) for name in NAMES}
    both = Both()
    mode = environ["PEERS"]
    if mode == "compare":
        ours = {numpy_s: both.function(numpy_s, other) for numpy_s, other in ours.items()}
    if mode != "plain":
        replace(ours)
    return both


_BOTH = _start()
