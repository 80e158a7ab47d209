"""The names of a leaf's annotations: those that tuning records keep, and the mark for lowering.

This module needs no tvm, because a compilation reads records as plain JSON.
"""

ANNOTATION = "te_select.span"
PATTERN = "te_select.pattern"
KNOB = "te_select.knob."  # followed by the name of the knob
