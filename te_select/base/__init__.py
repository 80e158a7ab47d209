"""What other rooms stand on.

Files are in `on_disk`, `atomic`, `scratch` and `cache`, what the process does in `forks`,
`interrupts`, `imports` and `variables`, and facts in `kinds`, `levels` and `version`.
"""
