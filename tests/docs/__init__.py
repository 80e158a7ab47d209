"""Tests of README.md, CONTRIBUTING.md and the pages of docs/."""
