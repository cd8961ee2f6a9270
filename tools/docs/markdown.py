"""What the documentation tools need to know about a page: its headings, links and code blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

FENCE = re.compile(r"^(\s*)(```+)\s*([\w-]*)")
HEADING = re.compile(r"^(#{1,6}) (.+?)\s*$")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
MARKER = re.compile(r"^\s*<!-- (run|run slowly|run on a cluster|not run|tested by)(?:: (.+))? -->$")
PAGE_MARKER = re.compile(r"^<!-- other blocks (not run|tested by): (.+) -->$")


@dataclass(frozen=True)
class Heading:
    line: int
    level: int
    title: str
    anchor: str


@dataclass(frozen=True)
class Link:
    line: int
    target: str
    image: bool = False


@dataclass(frozen=True)
class Marker:
    """A comment before a block, invisible to readers: how the block is tested, or why it is not."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str
    marker: Marker | None = None


@dataclass
class Document:
    headings: list[Heading] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    marker: Marker | None = None
    """Applies to the blocks that have no marker of their own."""


def parse(text: str) -> Document:
    document, lines = Document(), text.splitlines()
    before: Marker | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        if fence := FENCE.match(line):
            end = _end_of_block(lines, number, fence[2])
            content = "\n".join(row.removeprefix(fence[1]) for row in lines[number + 1 : end])
            document.blocks.append(Block(number + 1, fence[3], content, before))
            before, number = None, end + 1
            continue
        if found := PAGE_MARKER.match(line):
            document.marker = Marker(found[1], found[2])
        elif found := MARKER.match(line):
            before = Marker(found[1], found[2] or "")
        elif line.strip():
            before = None
            _parse_line(document, line, number + 1)
        number += 1
    return document


def _end_of_block(lines: list[str], start: int, fence: str) -> int:
    for number in range(start + 1, len(lines)):
        if lines[number].strip().startswith(fence):
            return number
    raise ValueError(f"line {start + 1}: the code block does not end")


def _parse_line(document: Document, line: str, number: int) -> None:
    if heading := HEADING.match(line):
        anchor = _unused(anchor_of(heading[2]), {one.anchor for one in document.headings})
        document.headings.append(Heading(number, len(heading[1]), heading[2], anchor))
    for image, _, target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
        document.links.append(Link(number, target, image == "!"))


def anchor_of(title: str) -> str:
    """The anchor that GitHub gives to a heading."""
    plain = LINK.sub(r"\2", title)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")


def _unused(anchor: str, used: set[str]) -> str:
    names = [anchor, *(f"{anchor}-{number}" for number in range(1, 100))]
    return next(name for name in names if name not in used)
