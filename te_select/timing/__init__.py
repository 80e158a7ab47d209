"""Timing, shared by bench and tuning: rounds, roofs, operands and clocks."""
