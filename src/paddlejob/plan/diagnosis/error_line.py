"""The line of a program's output that says why it failed, and whether another attempt can end differently."""

from __future__ import annotations

import re

from paddlejob.text import visible

LIMIT = 300
NAME = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Fault|Timeout|NotFound)"
"""Of an exception, with its module."""
ERROR = re.compile(
    rf"^{NAME}(?:$|:$|: )"
    r"|^(?:[^\s:]+: )*(?:Fatal |fatal |FATAL |internal )?(?:[Ee]rror|ERROR|[Ff]atal|FATAL): \S"
    r"|^\S+: (?:can't open file '|No module named \S+$|Error while finding module specification for )"
)
"""An exception of Python or Paddle, or how tools report a mistake: train.py: error: unrecognized arguments: --epoch."""
ECHO = re.compile(r"^(?:[\w.]+\.)?(?:CalledProcessError|ChildFailedError|SystemExit)\b")
"""The end of another process, which has said why."""
CERTAIN = re.compile(
    r"^(?:SyntaxError|IndentationError|TabError|ModuleNotFoundError)\b"
    r"|^ImportError: cannot import name "
    r"|^\S+: (?:can't open file '.*\[Errno 2\]|No module named \S+$|Error while finding module specification for )"
    r"|: error: (?:unrecognized arguments|the following arguments are required|ambiguous option|argument )"
)
MISSING_FILE = re.compile(r"^FileNotFoundError\b")
PASSING = re.compile(
    r"connect|broken ?pipe|timed?[ -]?out|unreachable|temporar|try again|name resolution|service not known|getaddrinfo"
    r"|socket|\bSSL|URLError|HTTP|remote|\bpeers?\b|rendezvous|barrier|\b(?:TCP)?store\b|gloo|[nbhx]ccl|all_?reduce"
    r"|broadcast|already in use|too many (?:open|requests)|no space left|input/output error|stale file|out of memory"
    r"|exhausted|allocate|cuda|cudnn|driver|device|busy|interrupt|SIGTERM|terminated|killed|aborted"
    r"|\b(?:429|50[0234])\b",
    re.IGNORECASE,
)
"""What a peer, a network, a disk or a device may be the cause of."""
VARYING = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d|\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b0x[0-9a-f]+\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b"
    r"|\b(?:pid|process|thread)\b[ =:#]*\d+|/tmp/\S+",
    re.IGNORECASE,
)
"""Times, addresses, process numbers and random names: two attempts never have the same."""


def find(output: str) -> str:
    """The last line that reads as an error; empty if none does."""
    lines = [visible(line) for line in output.splitlines()]
    found = [number for number, line in enumerate(lines) if ERROR.search(line)]
    telling = [number for number in found if not ECHO.search(lines[number])] or found
    return _whole(lines[telling[-1] :])[:LIMIT] if telling else ""


def _whole(lines: list[str]) -> str:
    """Paddle writes what happened below the name of its exception."""
    first, following = lines[0], next(filter(None, lines[1:]), "")
    return f"{first} {following}" if first.endswith(":") and following else first


def is_certain(line: str, alone: bool) -> bool:
    """Whether every attempt ends with it. A file may yet be written by something else, unless it is alone."""
    return CERTAIN.search(line) is not None or (alone and MISSING_FILE.search(line) is not None)


def may_pass(line: str) -> bool:
    """Whether it may be gone in the next attempt although nobody changes the program."""
    return not line or (PASSING.search(line) is not None and CERTAIN.search(line) is None)


def is_same(line: str, previous: str) -> bool:
    return VARYING.sub("", line) == VARYING.sub("", previous)
