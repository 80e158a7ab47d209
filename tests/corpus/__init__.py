"""Conformance: the Select cases of other projects, run against te-select.

A corpus file is a JSON list of cases. A case has an operator, shapes, element types, what is
expected, and values if the source has them. ``TE_SELECT_CORPUS`` names a folder of such files.
"""
