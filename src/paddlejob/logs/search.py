"""Searches bytes line by line with RE2, whose time is linear in the text for every pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import re2

from paddlejob.errors import BadInput
from paddlejob.logs.line import shown

BLOCK = 4 << 20
MOST_MATCHES = 500
PATTERN_LIMIT = 1000
MOST_SPANS = 50
"""Of one line, to highlight."""


@dataclass(frozen=True)
class Match:
    replica: str
    attempt: int
    line: int
    """Its number, from 1."""
    text: str
    spans: tuple[tuple[int, int], ...] = ()
    """Where the pattern matches, in UTF-16 code units, as JavaScript counts."""


@dataclass(frozen=True)
class Matches:
    found: list[Match]
    complete: bool
    """Whether these are all; otherwise the search stopped at the limit."""
    searched: int
    """Bytes."""


@dataclass(frozen=True)
class Searched:
    """A log to search: a name and its content in blocks."""

    replica: str
    attempt: int
    blocks: Iterable[bytes]


def compile_query(pattern: str) -> Any:
    """Case counts only if the pattern has an upper-case letter, as in ripgrep and Vim; raises BadInput."""
    if not pattern or len(pattern) > PATTERN_LIMIT:
        raise BadInput(f"type a pattern of 1 to {PATTERN_LIMIT} characters to search for")
    options = re2.Options()
    options.case_sensitive = pattern != pattern.lower()
    options.log_errors = False
    options.never_nl = True
    try:
        return re2.compile(b"(?m)" + pattern.encode(), options)
    except re2.error as error:
        detail = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error.args[0]
        raise BadInput(
            f"{pattern} is not a regular expression: {detail}; write \\ before a special character"
        ) from None


def search(logs: Iterable[Searched], pattern: str) -> Matches:
    """The first matches of all logs, in their order."""
    compiled = compile_query(pattern)
    found: list[Match] = []
    size = 0
    for log in logs:
        before = 0
        for block in _whole_lines(log.blocks):
            size += len(block)
            for number, line in _matching(compiled, block):
                if len(found) == MOST_MATCHES:
                    return Matches(found, complete=False, searched=size)
                text = shown(line)
                found.append(Match(log.replica, log.attempt, before + number, text, _spans(compiled, text)))
            before += block.count(b"\n")
    return Matches(found, complete=True, searched=size)


def _matching(compiled: Any, block: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines with at least one match and their numbers in the block, from 1."""
    position, counted, number = 0, 0, 1
    while found := compiled.search(block, position):
        start = block.rfind(b"\n", 0, found.start()) + 1
        end = block.find(b"\n", max(found.end() - 1, found.start()))
        end = len(block) if end < 0 else end
        number += block.count(b"\n", counted, start)
        counted = start
        yield number, block[start:end]
        position = end + 1
        if position >= len(block):
            return


def _spans(compiled: Any, text: str) -> tuple[tuple[int, int], ...]:
    """The page does not match by itself: a pattern of RE2 may mean something else there, or take forever."""
    content = text.encode()
    found = islice((match.span() for match in compiled.finditer(content)), MOST_SPANS)
    units = [(_units(content[:start]), _units(content[:end])) for start, end in found]
    return tuple((start, end) for start, end in units if end > start)


def _units(content: bytes) -> int:
    """A match may begin or end inside a character, where the pattern asks for single bytes."""
    return len(content.decode(errors="ignore").encode("utf-16-le")) // 2


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut after newlines; a line longer than a block is cut where the block ends."""
    rest = b""
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut or len(rest) > BLOCK:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest
