"""The visible part of a line: what a terminal would show, without colours, cut to a bounded length."""

from __future__ import annotations

import re

LINE_LIMIT = 4096
"""Characters of a line that are looked at."""
REDRAW = re.compile(r"[\r\b]+")
CONTROL = re.compile(r"\x1b\[[0-9;?]{0,32}[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def visible(line: str) -> str:
    """The last state of a line that was drawn several times, as progress bars are."""
    line = line.rstrip("\r\n")
    if len(line) > LINE_LIMIT:
        line = _bounded(line)
    if "\r" in line or "\b" in line:
        line = next((part for part in reversed(REDRAW.split(line)) if part.strip()), "")
    return (line if line.isprintable() else CONTROL.sub("", line)).strip()


def _bounded(line: str) -> str:
    """The last states of a bar; of other lines the beginning, up to a space because a number could be cut."""
    end = line[-LINE_LIMIT:]
    redrawn = REDRAW.search(end)
    return end[redrawn.end() :] if redrawn else line[:LINE_LIMIT].rpartition(" ")[0]
