"""The documents of the repository, and the code blocks in them.

A comment in front of a block says if and how it is run; readers do not see it:

``<!-- slow -->``
    In the long tests only.
``<!-- cuda -->``
    Where there is a GPU. Elsewhere it is parsed.
``<!-- needs: PACKAGES -->``
    Where these packages are, in the second round of .ci/run.
``<!-- in a fresh clone -->``
    Only in the test that pastes the README's commands into a shell.
``<!-- from: FILE -->``
    Never. Its lines stand in that file, in their order, and other tests run the file. In place of
    a file it may name a command of te-select, whose output the block shows. There ``...`` stands
    for what is left out, and what follows two spaces and # in a line is ours.
``<!-- not run: REASON -->``
    Never. Commands of te-select in it are parsed.
``<!-- given`` and lines of Python ``-->``
    What the block needs. It is run before the block. It may set ``around`` to what stands around a
    fragment in C or C++; ``BLOCK`` in it is where.
"""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt

from tests.support import ROOT, text_of

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))
)
RUN = ("python", "sh", "c", "cpp", "json")
"""The languages of blocks that are run, compiled or read."""
SHOWN = ("text", "mermaid")
"""The languages of blocks that are no code: drawings, layouts of folders, output."""
SLOW, CUDA, CLONE, NEEDS = "slow", "cuda", "in a fresh clone", "needs"
FROM, NOT_RUN = "from", "not run"
_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)
_GIVEN = "given\n"


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Parameters
    ----------
    page
        Its path in the repository.
    line
        The line of its first line of code, from 1.
    language
        As its fence names it; empty if it names none.
    text
        The code.
    mark
        ``""``, or one of the marks above.
    reason
        Why it is not run, or the file whose lines it shows.
    given
        Python that is run before it.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    reason: str = ""
    given: str = ""

    @property
    def place(self):
        """The page and the line."""
        return f"{self.page}:{self.line}"


def blocks(page):
    """Read the code blocks of a page."""
    found, comments = [], []
    for token in MarkdownIt().parse(text_of(page)):
        if token.type == "html_block":
            comments += _COMMENT.findall(token.content)
        elif token.type in ("fence", "code_block"):
            assert token.map is not None
            line = token.map[0] + (2 if token.type == "fence" else 1)
            found.append(_block(page, line, token.info.strip(), token.content, comments))
            comments = []
        else:
            comments = []
    return found


def _block(page, line, language, text, comments):
    given = "".join(each.removeprefix(_GIVEN) for each in comments if each.startswith(_GIVEN))
    marks = [each for each in comments if not each.startswith(_GIVEN)]
    mark, _, reason = " ".join(marks).partition(":")
    return Block(page, line, language, text, mark, reason.strip(), given)
