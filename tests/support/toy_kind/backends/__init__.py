"""The toy's target, code and linking."""
