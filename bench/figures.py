"""Figures of the last run of each benchmark, in bench/figures.json, for the plots of the documentation."""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_name("figures.json")


def record(benchmark: str, case: str, figures: dict[str, float]) -> None:
    """Replace the figures of one case."""
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    known.setdefault(benchmark, {})[case] = {name: round(value, 2) for name, value in figures.items()}
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
