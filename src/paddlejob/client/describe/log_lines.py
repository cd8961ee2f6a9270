"""Pieces of logs as lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from paddlejob.errors import BadInput


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines with their ends; the last one may have none."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


def matching_lines(pieces: Iterable[bytes], pattern: str) -> Iterator[bytes]:
    """The lines in which a regular expression is found."""
    try:
        expression = re.compile(pattern.encode())
    except re.error as error:
        raise BadInput(f"--grep {pattern}: is not a regular expression: {error}") from None
    return (line for line in lines_of(pieces) if expression.search(line))
