"""Long attacks on te-select, by minutes: ``python benchmarks/soak`` (docs/soak.md)."""
