"""Print what a run of pytest has skipped, by its JUnit XML: test ids and files, a line each."""

import sys
from xml.etree import ElementTree

ids = []
for case in ElementTree.parse(sys.argv[1]).iter("testcase"):
    if case.find("skipped") is not None:
        module, name = case.get("classname"), case.get("name", "")
        file = f"{(module or name).replace('.', '/')}.py"  # a skipped module has no class name
        ids.append(f"{file}::{name}" if module else file)
if not ids:  # pytest runs all tests where it is given none
    sys.exit(f"{sys.argv[1]} names no skipped test; expected those that need torch")
print(*ids, sep="\n")
