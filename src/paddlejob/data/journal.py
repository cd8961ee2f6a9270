"""The notes of an unfinished run, one JSON document a line, from which the next run goes on.

A split notes its request, where it cuts, and each part; a staging notes what it brings and what it has brought.
"""

from __future__ import annotations

import json
from typing import Any

from paddlejob.data.sources import WORK_DIR

JOURNAL = f"{WORK_DIR}/journal.jsonl"


def line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def entries(content: bytes) -> list[dict[str, Any]]:
    """All whole lines up to the first that cannot be read: a kill tears the last, a power cut may spoil more."""
    found = []
    for whole in content.split(b"\n")[:-1]:
        try:
            entry = json.loads(whole)
        except ValueError:
            break
        if not isinstance(entry, dict):
            break
        found.append(entry)
    return found
