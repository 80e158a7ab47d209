"""Measures candidates of a tuning session: isolated, checked against NumPy, alone on the machine.

Importing this imports neither tvm nor a compiler.
"""

from __future__ import annotations

from te_select.tuning.measuring.candidate import Built, Candidate, Measurement
from te_select.tuning.measuring.measurer import Measurer

__all__ = ["Built", "Candidate", "Measurement", "Measurer"]
