"""Numbers as programs print them: 1,000,000 and 3e-05, nan and inf."""

from __future__ import annotations

import re

DIGITS = r"(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)"
# In lower case: matching both cases takes twice as long.
NUMBER = rf"[-+]?(?:{DIGITS}(?:\.\d*+)?|\.\d++)(?:e[-+]?\d{{1,4}}+)?|[-+]?(?:nan|inf(?:inity)?)\b"
LARGEST = 2**31 - 1
"""The largest step that fits into the status: the API server limits integers to 32 bits."""
DECIMAL = re.compile(NUMBER)


def number(text: str) -> float | None:
    """None for text that is not a number as a whole."""
    return float(text.replace(",", "")) if DECIMAL.fullmatch(text.lower()) else None


def whole(value: float | None) -> int | None:
    """The value as a step or an epoch; None if it cannot be one."""
    return int(value) if value is not None and 0 <= value <= LARGEST else None
