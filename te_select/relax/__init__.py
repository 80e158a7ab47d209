"""Select in Relax: passes that put our kernels into a model which TVM compiles.

Importing this package imports TVM. Nothing of te_select imports it.
"""

from te_select.relax.passes import UseSelect, UseUnfusedSelect, report

__all__ = ["UseSelect", "UseUnfusedSelect", "report"]
