"""Timing: what bench and tuning both measure with; rounds, roofs, operands and clocks."""
