"""Figures of the last run of each benchmark, in bench/figures.json, for the plots of the documentation."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True)
class Measured:
    """What one case of a benchmark gave, when, and on which machine."""

    values: dict[str, float]
    date: str
    machine: str


def record(benchmark: str, case: str, values: dict[str, float], file: Path = FILE) -> None:
    """Replace the figures of one case."""
    known = json.loads(file.read_text()) if file.exists() else {}
    rounded = {name: round(value, 2) for name, value in values.items()}
    found = Measured(rounded, f"{datetime.now(UTC):%Y-%m-%d}", machine())
    known.setdefault(benchmark, {})[case] = vars(found)
    file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def read(benchmark: str, file: Path = FILE) -> dict[str, Measured]:
    """The figures of each case of a benchmark."""
    return {case: Measured(**found) for case, found in json.loads(file.read_text())[benchmark].items()}


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{len(os.sched_getaffinity(0))} CPUs, {memory / 2**30:.0f} GiB"
