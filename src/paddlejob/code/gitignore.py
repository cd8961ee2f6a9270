"""Patterns of a .gitignore, which match as Git's do: byte by byte, the last that matches decides."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_CLASSES = {
    b"alnum": b"0-9A-Za-z", b"alpha": b"A-Za-z", b"blank": b" \\t", b"cntrl": b"\\x00-\\x1f\\x7f", b"digit": b"0-9",
    b"graph": b"!-~", b"lower": b"a-z", b"print": b" -~", b"punct": b"!-/:-@\\[-`{-~", b"space": b" \\t\\n\\r",
    b"upper": b"A-Z", b"xdigit": b"0-9A-Fa-f",
}  # fmt: skip


@dataclass(frozen=True)
class Pattern:
    ignores: bool
    """False for a pattern that begins with an exclamation mark."""
    folders_only: bool
    by_name: bool
    """Without a slash, it matches the last part of a path; else the whole path below the directory of the file."""
    prefix: bytes
    """What comes before the first special character, and is compared as it is."""
    rest: re.Pattern[bytes] | None
    """None if it can match nothing."""

    def matches(self, path: bytes, is_folder: bool) -> bool:
        if self.rest is None or (self.folders_only and not is_folder):
            return False
        tested = path.rpartition(b"/")[2] if self.by_name else path
        return tested.startswith(self.prefix) and self.rest.fullmatch(tested, len(self.prefix)) is not None


def parse_patterns(content: bytes) -> tuple[Pattern, ...]:
    """The patterns of a file, in its order."""
    lines = (line.removesuffix(b"\r") for line in content.removeprefix(_BOM).split(b"\n"))
    found = (_parse(_without_trailing_spaces(line)) for line in lines if line and not line.startswith(b"#"))
    return tuple(one for one in found if one)


def decision(patterns: tuple[Pattern, ...], path: bytes, is_folder: bool) -> bool | None:
    """Whether they ignore the path, which is relative to the directory of the file; None if none of them matches."""
    return next((one.ignores for one in reversed(patterns) if one.matches(path, is_folder)), None)


def _without_trailing_spaces(line: bytes) -> bytes:
    found = re.match(rb"(?:\\.|[^\\ ]|\\$| +(?=[^ ]))*", line, re.DOTALL)
    return found[0] if found else line


def _parse(line: bytes) -> Pattern | None:
    text = line.removeprefix(b"!")
    folders_only, text = text.endswith(b"/"), text.removesuffix(b"/")
    by_name = b"/" not in text
    ignores, text = not line.startswith(b"!"), text.removeprefix(b"/")
    if not text:
        return None
    prefix = re.match(rb"[^*?\[\\]*", text)
    assert prefix
    return Pattern(ignores, folders_only, by_name, prefix[0], _compiled(text[prefix.end() :]))


def _compiled(text: bytes) -> re.Pattern[bytes] | None:
    """What follows the prefix, as a regular expression."""
    parts, at = [], 0
    while at < len(text):
        taken = _next_part(text, at)
        if taken is None:
            return None
        parts.append(taken[0])
        at = taken[1]
    return re.compile(b"".join(parts), re.DOTALL)


def _next_part(text: bytes, at: int) -> tuple[bytes, int] | None:
    """One part as a regular expression, and where the next begins."""
    match text[at : at + 1]:
        case b"*":
            return _stars(text, at)
        case b"?":
            return b"[^/]", at + 1
        case b"[":
            return _brackets(text, at + 1)
        case b"\\":
            return (re.escape(text[at + 1 : at + 2]), at + 2) if at + 1 < len(text) else None
        case other:
            return re.escape(other), at + 1


def _stars(text: bytes, at: int) -> tuple[bytes, int]:
    """Two stars that are a whole part of a path match any number of parts; others match within one."""
    end = len(text) - len(text[at:].lstrip(b"*"))
    after = text[end : end + 1]
    whole = (at == 0 or text[at - 1 : at] == b"/") and (after in (b"", b"/") or text[end : end + 2] == b"\\/")
    if end - at < 2 or not whole:
        return b"[^/]*", end
    return (b"(?:.*/)?", end + 1) if after == b"/" else (b".*", end)


def _brackets(text: bytes, at: int) -> tuple[bytes, int] | None:
    """A set of characters, of which a slash is never one; None if it does not end or names no class."""
    negated = text[at : at + 1] in (b"!", b"^")
    at += negated
    members: list[bytes] = []
    previous, first = b"", at
    while at == first or text[at : at + 1] != b"]":
        if named := re.compile(rb"\[:([^\]]*):\]").match(text, at):
            if named[1] not in _CLASSES:
                return None
            members.append(_CLASSES[named[1]])
            previous, at = b"", named.end()
            continue
        ranged = text[at : at + 1] == b"-" and previous and text[at + 1 : at + 2] not in (b"", b"]")
        at += bool(ranged)
        at += text[at : at + 1] == b"\\"
        character = text[at : at + 1]
        if not character:
            return None
        start = previous if ranged else character
        if start <= character:
            members.append(re.escape(start) + b"-" + re.escape(character))
        previous, at = b"" if ranged else character, at + 1
    inside = b"".join(members)
    if negated:
        return b"[^/" + inside + b"]", at + 1
    return b"(?!/)[" + inside + b"]" if inside else b"(?!)", at + 1
