"""Hides the extension, in every Python whose PYTHONPATH has this folder."""

import sys

sys.modules["te_select.runtime.call._extension"] = None  # type: ignore[assignment]
