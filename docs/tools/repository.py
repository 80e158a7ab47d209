"""A hook of mkdocs: files of the repository outside docs/ as pages of the site.

README.md is the first page, and other documents at the top have their places. Any other file or
folder that a page links to becomes a page that shows it. Links are written as they hold in the
repository, and are rewritten here.
"""

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
AT_THE_TOP = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
_URIS = {ROOT / path: uri for uri, path in AT_THE_TOP.items()}
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
_LANGUAGES = {".py": "python", ".c": "c", ".h": "c", ".cc": "cpp", ".cuh": "cuda", ".toml": "toml"}


def on_files(files: Files, config: Any) -> Files:
    """Add the documents at the top, and a page for each file that is linked to."""
    for uri, path in AT_THE_TOP.items():
        files.append(File.generated(config, uri, content=(ROOT / path).read_text()))
    linked = {
        target
        for page in files.documentation_pages()
        for link in _LINK.findall(page.content_string)
        if _is_source(target := _target(page.src_uri, link))
    }
    for target in sorted(linked):
        shown = sorted(target.iterdir()) if target.is_dir() else [target]
        text = "\n".join(_listing(path) for path in shown if path.is_file())
        files.append(File.generated(config, _source_uri(target), content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_others: Any) -> str:
    """Rewrite the links of a page from the repository's places to the site's."""
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown
    return _LINK.sub(lambda link: _rewritten(uri, link[1]), markdown)


def _listing(path: Path) -> str:
    language = _LANGUAGES.get(path.suffix, "text")
    return f"# {path.relative_to(ROOT)}\n\n````{language}\n{path.read_text()}\n````\n"


def _rewritten(uri: str, link: str) -> str:
    target = _target(uri, link)
    if target in _URIS:
        found = _URIS[target]
    elif target.is_relative_to(DOCS):
        found = target.relative_to(DOCS).as_posix()
    elif _is_source(target):
        found = _source_uri(target)
    else:
        return link  # mkdocs warns of it
    return os.path.relpath(found, Path(uri).parent)


def _target(uri: str, link: str) -> Path:
    """The file of the repository that a link of a page names."""
    page = ROOT / AT_THE_TOP[uri] if uri in AT_THE_TOP else DOCS / uri
    return (page.parent / link).resolve()


def _is_source(path: Path) -> bool:
    """Whether it is a file or a folder that has no page yet."""
    return (
        path.exists()
        and path.is_relative_to(ROOT)
        and not path.is_relative_to(DOCS)
        and path not in _URIS
    )


def _source_uri(path: Path) -> str:
    return f"source/{path.relative_to(ROOT).as_posix()}.md"
