"""The regular expression of `spec.progress.pattern`: RE2, so that no pattern can block the operator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MAX_MEMORY = 1 << 15
"""Bytes of a compiled pattern. At this size the slowest pattern that was found takes 7 us for each character."""
GROUP = re.compile(r"\(\?P?<(\w+)>")


class BadPattern(Exception):
    """The message says what is wrong and what to change."""


@dataclass(frozen=True)
class Pattern:
    compiled: Any

    def search(self, text: str) -> dict[str, str] | None:
        """The named groups of the first match; None if there is none."""
        found = self.compiled.search(text)
        return {name: group for name, group in found.groupdict().items() if group is not None} if found else None


@lru_cache(maxsize=1000)
def compile_pattern(pattern: str) -> Pattern:
    """Raises BadPattern."""
    # The import takes 10 ms, and few jobs have a pattern.
    import re2

    names = GROUP.findall(pattern)
    if not names:
        raise BadPattern(r"has no named group; add one, for example (?P<step>\d+)")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise BadPattern(f"has two groups named {repeated[0]}; rename one")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return Pattern(re2.compile(pattern, options))
    except re2.error as error:
        reason = error.args[0].decode(errors="replace")
        raise BadPattern(f"{reason}; correct it (RE2 syntax: no look-around, no back-references)") from error
