"""Pieces of logs as lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from paddlejob.errors import BadInput

LONGEST = 1 << 20
"""Bytes. A longer line comes in parts, so that output without newlines does not fill the memory."""


def lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines with their ends; the last one may have none."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        if len(rest) > LONGEST:
            whole, rest = [*whole, rest], b""
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


def line_pattern(text: str) -> re.Pattern[bytes]:
    """The regular expression of --grep."""
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise BadInput(f"--grep {text}: is not a regular expression: {error}") from None
