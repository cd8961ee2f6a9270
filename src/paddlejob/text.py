"""The visible part of a line: what a terminal would show, without colours, cut to a bounded length."""

from __future__ import annotations

import re

LINE_LIMIT = 4096
"""Characters of a line that are looked at."""
REDRAW = re.compile(r"[\r\b]+")
COLOUR = r"\x1b\[[0-9;:]*m"
CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\))"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
"""Whole sequences, as of colours and titles of windows; else single characters, also those of 8 bits and those that
change the direction of the text around them."""
UNWANTED = re.compile(f"({COLOUR}|\r)|{CONTROL.pattern}")


def visible(line: str) -> str:
    """The last state of a line that was drawn several times, as progress bars are."""
    line = line.rstrip("\r\n")
    if len(line) > LINE_LIMIT:
        line = _bounded(line)
    if "\r" in line or "\b" in line:
        line = next((part for part in reversed(REDRAW.split(line)) if part.strip()), "")
    return printable(line).strip()


def printable(text: str, colours: bool = False) -> str:
    """Text that controls no terminal; with `colours`, those and the carriage returns of progress bars stay."""
    if text.isprintable():
        return text
    return UNWANTED.sub(lambda found: found[1] or "", text) if colours else CONTROL.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    """What JSON does not escape by itself is escaped as in JSON."""
    return f"\\u{ord(found[0]):04x}" if found[0] >= "\x7f" else ""


def _bounded(line: str) -> str:
    """The last states of a bar; of other lines the beginning, up to a space because a number could be cut."""
    end = line[-LINE_LIMIT:]
    redrawn = REDRAW.search(end)
    return end[redrawn.end() :] if redrawn else line[:LINE_LIMIT].rpartition(" ")[0]
