"""Facts: kinds of machines, levels of x86-64, versions."""
