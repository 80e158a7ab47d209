"""What was here is gone, and the import says what to use instead."""

from te_select.errors import removed

raise ImportError(removed(__name__))
