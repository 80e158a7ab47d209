"""Measures candidates of a tuning session: isolated, compared with NumPy, one at a time.

Importing this imports neither tvm nor a compiler.
"""

from __future__ import annotations

from te_select.tuning.measuring.candidate import Built, Candidate, Measurement
from te_select.tuning.measuring.measurer import Measurer

__all__ = ["Built", "Candidate", "Measurement", "Measurer"]
