"""What other rooms stand on: kinds of machines, levels, versions, forks, Ctrl-C, variables."""
