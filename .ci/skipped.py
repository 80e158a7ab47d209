"""Print the test functions that a run of pytest has skipped, by its JUnit XML, a line each."""

import sys
from xml.etree import ElementTree

functions = []
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    if case.find("skipped") is not None:
        module = case.get("classname")
        # What installs more may change a test's parameters, so their ids are left out.
        name, _, _ = case.get("name", "").partition("[")
        file = f"{(module or name).replace('.', '/')}.py"  # a skipped module has no class name
        functions.append(f"{file}::{name}" if module else file)
if not functions:  # pytest runs all tests where it is given none
    sys.exit(f"{sys.argv[1]} names no skipped test; expected those that need torch")
print(*dict.fromkeys(functions), sep="\n")
