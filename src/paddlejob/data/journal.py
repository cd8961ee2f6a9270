"""The notes of an unfinished run, one JSON document a line, from which the next run goes on."""

from __future__ import annotations

import json
from typing import Any

from paddlejob.data.sources import WORK_DIR

JOURNAL = f"{WORK_DIR}/journal.jsonl"


def line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def entries(content: bytes) -> list[dict[str, Any]]:
    """All whole lines: the last one may have been torn by a kill."""
    return [json.loads(whole) for whole in content.split(b"\n")[:-1]]
