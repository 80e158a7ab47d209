"""The version of te-select; pyproject.toml reads it from here."""

__version__ = "0.3.0"
