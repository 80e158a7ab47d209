"""A worker whose answer is garbled, as after a candidate that wrote anywhere."""

import os
import sys


class Worker:
    def garble(self, answer):
        os.write(int(sys.argv[2]), answer)
        os.read(int(sys.argv[2]), 1)
