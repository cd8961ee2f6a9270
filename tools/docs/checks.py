"""What must hold for the documentation: twins, navigation, links, and how each command or program is tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools.docs.evidence import problems_of_tests
from tools.docs.markdown import Block, Document, parse
from tools.docs.pages import (
    DOCS,
    ENGLISH_ONLY,
    GENERATED,
    NAVIGATION,
    OUTSIDE,
    ROOT,
    english_of,
    english_pages,
    navigation,
    pages_of,
    twin_of,
)
from tools.docs.stage import is_stale

SHELL = re.compile(r"^(\$ |pdj |kubectl |helm |docker |make |pip |python )", re.MULTILINE)
TESTED = ("bash", "sh", "console", "python")
"""The languages of blocks that show commands or programs."""
COMMENT = re.compile(r"(^|\s+)#.*$", re.MULTILINE)


def main() -> int:
    problems = list(problems_of_documentation())
    for problem in problems:
        print(problem)
    stale = [page for page in english_pages() if is_stale_twin(page)]
    for page in stale:
        print(
            f"note: docs/{page} changed after its translation, and its Chinese page says so; "
            f"update docs/{twin_of(page)}, then run `python -m tools.docs translated {page}`"
        )
    return 1 if problems else 0


def problems_of_documentation() -> Iterator[str]:
    yield from missing_twins()
    yield from missing_in_navigation()
    twins = {f"docs/{page}": f"docs/{twin_of(page)}" for page in english_pages()} | OUTSIDE
    for page, twin in twins.items():
        document = parse((ROOT / page).read_text())
        yield from untested_blocks(page, document)
        if (ROOT / twin).exists() and twin != page:
            yield from differences(page, document, twin, parse((ROOT / twin).read_text()))
    for path in [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in [*OUTSIDE, *OUTSIDE.values()])]:
        yield from broken_links(path)


def is_stale_twin(page: str) -> bool:
    translated = not page.startswith((*ENGLISH_ONLY, *GENERATED)) and (DOCS / twin_of(page)).exists()
    return translated and is_stale(page)


def missing_twins() -> Iterator[str]:
    english = english_pages()
    for page in english:
        if not (DOCS / twin_of(page)).exists():
            yield f"docs/{page}: there is no Chinese page; write docs/{twin_of(page)}"
    for path in sorted(DOCS.rglob("*.zh.md")):
        if english_of(str(path.relative_to(DOCS))) not in english:
            yield f"docs/{path.relative_to(DOCS)}: there is no English page of that name"


def missing_in_navigation() -> Iterator[str]:
    listed = pages_of(navigation())
    name = NAVIGATION.relative_to(ROOT)
    yield from (f"{name}: {page} does not exist" for page in listed if not (DOCS / page).is_file())
    yield from (f"{name}: {page} is not listed" for page in english_pages() if page not in listed)


def differences(page: str, english: Document, twin: str, chinese: Document) -> Iterator[str]:
    """Headings and blocks must match one to one; words are up to the translator."""
    levels = [[heading.level for heading in document.headings] for document in (english, chinese)]
    if levels[0] != levels[1]:
        titles = [[f"{one.level} {one.title}" for one in document.headings] for document in (english, chinese)]
        yield f"{twin}: headings differ from {page}: {titles[0]} and {titles[1]}"
    if len(english.blocks) != len(chinese.blocks):
        yield f"{twin}: {len(chinese.blocks)} code blocks, {page} has {len(english.blocks)}"
        return
    for one, other in zip(english.blocks, chinese.blocks, strict=True):
        if one.language != other.language or (one.language and _commands(one) != _commands(other)):
            yield f"{twin}:{other.line}: the code block differs from {page}:{one.line} in more than comments"


def _commands(block: Block) -> list[str]:
    lines = [line.rstrip() for line in COMMENT.sub("", block.text).splitlines()]
    return [line for line in lines if line]


def untested_blocks(page: str, document: Document) -> Iterator[str]:
    for block in document.blocks:
        marker = block.marker or document.marker
        if not block.language and SHELL.search(block.text):
            yield f"{page}:{block.line}: mark this block as bash or console"
        if block.language not in TESTED:
            continue
        if marker is None:
            yield (
                f"{page}:{block.line}: say how this block is tested: put `<!-- run -->`, `<!-- run slowly -->`, "
                "`<!-- run on a cluster -->`, `<!-- tested by: PATH::TEST -->` or `<!-- not run: REASON -->` "
                "on the line above it"
            )
        elif marker.kind == "tested by":
            yield from (f"{page}:{block.line}: {one}" for one in problems_of_tests(page, block, marker.detail))
        elif marker.kind == "not run" and not marker.detail:
            yield f"{page}:{block.line}: say why this block is not run"


def broken_links(path: Path) -> Iterator[str]:
    here = path.relative_to(ROOT)
    chinese = path.name.endswith((".zh.md", ".zh-CN.md"))
    for link in parse(path.read_text()).links:
        name, _, anchor = link.target.partition("#")
        if "://" in link.target or link.target.startswith("mailto:"):
            continue
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{here}:{link.line}: {link.target} does not exist"
        elif anchor and anchor not in _anchors(target):
            yield f"{here}:{link.line}: {name or here} has no heading with the anchor #{anchor}"
        elif chinese and _has_twin(target) and not link.image:
            yield f"{here}:{link.line}: link to the Chinese page of {name}"


def _has_twin(target: Path) -> bool:
    if not target.is_relative_to(DOCS) or target.suffix != ".md" or target.name.endswith(".zh.md"):
        return False
    page = str(target.relative_to(DOCS))
    return twin_of(page) != page


def _anchors(target: Path) -> list[str]:
    """The anchors of a page; a Chinese page has those of its English twin."""
    name = english_of(target.name)
    file = target.with_name(name) if target.with_name(name).exists() else target
    return [heading.anchor for heading in parse(file.read_text()).headings] if file.suffix == ".md" else []
