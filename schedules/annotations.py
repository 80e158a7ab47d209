"""The annotations of a leaf: what a tuning record is read by, and the mark for lowering.

Without tvm, because a compilation reads records of plain JSON.
"""

ANNOTATION = "te_select.span"
PATTERN = "te_select.pattern"
KNOB = "te_select.knob."  # followed by the name of the knob
PLAIN_LEAF = "plain"  # in the place of a span's name: TVM compiles the leaf itself
