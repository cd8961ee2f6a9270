"""Reads progress from a line of a log: `key=value` and `key: value`."""

from __future__ import annotations

import re

from paddlejob.api.types import ProgressSpec
from paddlejob.progress.sample import Sample

LINE_LIMIT = 4096
"""Characters of a line that are looked at."""
PAIR = re.compile(r"\b([A-Za-z_]+)\s*[=:]\s*(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?:/([0-9]+))?")


class Parser:
    """Reads lines as the job's `spec.progress` asks for."""

    def __init__(self, spec: ProgressSpec | None = None) -> None:
        self._spec = spec or ProgressSpec()

    def parse(self, line: str) -> Sample | None:
        """What the line tells; None if it says nothing about progress."""
        found = {key.lower(): (value, total) for key, value, total in PAIR.findall(line[:LINE_LIMIT])}
        if "step" not in found:
            return None
        step, total = found["step"]
        metrics = {name: float(found[name][0]) for name in ("loss", *self._spec.metrics) if name in found}
        return Sample(step=int(float(step)), total_steps=int(total) if total else None, metrics=metrics)
