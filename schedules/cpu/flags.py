"""What a call tells a kernel: bits of its argument ``flags``."""

STREAM = 1  # store past the cache
SMALL = 2  # few bytes are moved: use one thread, and leave the output in the caches
SKIP = 4  # look at a block of cond first, and do not read a side that it does not select
BACKWARDS = 8  # walk backwards if out lies just ahead of an input

FLAGS = {"stream": STREAM, "small": SMALL, "skip": SKIP, "backwards": BACKWARDS}
