"""The metrics that a job has logged, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from paddlejob.cli.output.tables import columns
from paddlejob.logs.series import LoggedSample


def as_table(rows: list[LoggedSample], names: list[str]) -> str:
    """Without columns that are empty; a total is shown behind its position."""
    shown = [name for name in names if not name.startswith("total_") and any(_shown(row, name) for row in rows)]
    return columns([name.upper() for name in shown], [[_shown(row, name) for name in shown] for row in rows])


def csv_line(values: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["" if value is None else value for value in values])
    return text.getvalue()


def json_object(row: LoggedSample, names: list[str]) -> dict[str, Any]:
    """Only what the line tells. nan and inf are text, because JSON has no such numbers."""
    return {name: value for name in names if (value := row.cell(name)) is not None}


def json_line(row: LoggedSample, names: list[str]) -> str:
    return json.dumps(json_object(row, names), ensure_ascii=False) + "\n"


def _shown(row: LoggedSample, name: str) -> str:
    value = row.cell(name)
    total = row.cell(f"total_{name}s") if name in ("step", "epoch") else None
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else f"{value}/{total}" if total is not None else str(value)
