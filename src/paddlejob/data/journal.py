"""The journal of an unfinished run, one JSON object per line, from which the next run resumes.

A split records its request, where it cuts, and each part. Staging records which files it is about to copy and which
it has copied.
"""

from __future__ import annotations

import json
from typing import Any

WORK_DIR = ".pdj-data"
"""The hidden directory at the destination that holds everything unfinished."""
JOURNAL = f"{WORK_DIR}/journal.jsonl"


def format_entries(*entries: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def parse_entries(content: bytes) -> list[dict[str, Any]]:
    """Return the entries up to the first invalid line: a kill truncates the last one, a power cut may damage more."""
    found = []
    for line in content.split(b"\n")[:-1]:
        try:
            entry = json.loads(line)
        except ValueError:
            break
        if not isinstance(entry, dict):
            break
        found.append(entry)
    return found
