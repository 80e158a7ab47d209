"""What te_select does with the process that it runs in: forks, Ctrl-C, imports, variables."""
