"""Conformance: the Select cases of other projects, run against te-select.

A corpus file is a JSON list of cases. A case has an operator, shapes, element types, what is
expected, and values if the source has them.
"""

from __future__ import annotations

from te_select.verify.corpus.cases import Run, read_corpus
from te_select.verify.corpus.run import RunResult, run_corpus

__all__ = ["Run", "RunResult", "read_corpus", "run_corpus"]
