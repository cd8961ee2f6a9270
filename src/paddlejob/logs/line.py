"""A line of a log, and what a terminal would show of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from paddlejob.contract import ATTEMPT_MARKER
from paddlejob.redaction import without_environment
from paddlejob.text import printable

SHOWN_LIMIT = 10_000
"""Characters of a line that a page shows."""
SCREEN_LIMIT = 300
NOISE = re.compile(r"LAUNCH INFO |[IW]\d{4} \d\d:\d\d:\d\d\.\d+ |.*(?:User|Deprecation|Future)Warning: ")
"""Lines of Paddle's launcher and of glog, and warnings of Python."""
MARKER = re.compile(re.escape(ATTEMPT_MARKER).replace(r"\{\}", r"(\d{1,9})").encode())


class LogLine(NamedTuple):
    """A tuple, because logs have millions of them."""

    replica: str
    """The short name, such as worker-0."""
    attempt: int
    time: float | None
    """When it was printed, in seconds since the epoch, where that is known."""
    content: bytes
    """As the program printed it. A progress bar is one line, with a carriage return between its states."""
    end: bytes = b"\n"
    """Empty for a line that has not ended yet."""

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def named(self) -> bytes:
        """With its replica in front, as lines of several replicas are printed."""
        return b"[%s] %s" % (self.replica.encode(), last_state(self.content))


def begun_attempt(line: bytes) -> int:
    """The attempt that begins with this line, in a pod that was restarted in place; 0 if none does."""
    found = MARKER.fullmatch(line.rstrip()) if line.startswith(b"paddlejob: ") else None
    return int(found[1]) if found else 0


def states(line: bytes) -> list[bytes]:
    """Everything that a progress bar has shown, or the line itself."""
    return [state for state in line.split(b"\r") if state.strip()]


def last_state(line: bytes, pattern: re.Pattern[bytes] | None = None) -> bytes:
    """What a line shows in the end; with a pattern, the last state that matches, if one does."""
    if b"\r" not in line:
        return line
    shown = states(line) or [line]
    return next((state for state in reversed(shown) if pattern and pattern.search(state)), shown[-1])


def shown(line: bytes) -> str:
    """A line as text for a page: of a progress bar its last state, and not too long."""
    content = line.rstrip(b"\r\n")
    text = content[content.rfind(b"\r") + 1 :][: SHOWN_LIMIT * 4].decode(errors="replace")
    return text if len(text) <= SHOWN_LIMIT else f"{text[:SHOWN_LIMIT]}…"


def on_screen(lines: Iterable[bytes], count: int, without_noise: bool = False) -> list[str]:
    """The last lines, without control characters: those would move the cursor of the terminal."""
    texts = (without_environment(last_state(line).decode(errors="replace")) for line in lines)
    found = [printable(text).rstrip() for text in texts]
    return [_shorten(text) for text in found if text and not (without_noise and NOISE.match(text))][-count:]


def _shorten(text: str) -> str:
    return text if len(text) <= SCREEN_LIMIT else text[:SCREEN_LIMIT] + " ..."
