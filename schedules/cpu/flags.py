"""What a call tells a kernel: bits of its last argument, as ``host_cpu.h`` has them."""

STREAM = 1  # store past the cache
SMALL = 2  # so few bytes are moved that one thread does it, inside the caches
SKIP = 4  # look at cond first, and leave unread what a block of it does not select
BACKWARDS = 8  # where out lies just ahead of an input, walk backwards

FLAGS = {"stream": STREAM, "small": SMALL, "skip": SKIP, "backwards": BACKWARDS}
