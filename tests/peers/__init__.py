"""Peers' own tests, as they are and with te-select's functions in the place of NumPy's."""
