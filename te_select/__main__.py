"""``python -m te_select``: the command line."""

from te_select.cli import main

main()
