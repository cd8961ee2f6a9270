"""The table of faults and recovery times, and what did not hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from tools.chaos.recovery import Record
from tools.chaos.watch import Watch


def report(record: Record, problems: Sequence[str], watch: Watch) -> str:
    lines = [f"{'fault':20} {'count':>6} {'median s':>9} {'p95 s':>7}"]
    everything = [one for times in record.times.values() for one in times]
    for kind, times in [*sorted(record.times.items()), ("all", everything)]:
        if times:
            lines.append(f"{kind:20} {len(times):6} {statistics.median(times):9.1f} {percentile(times, 95):7.1f}")
    lines += ["", *watch.memory_table(), ""]
    lines += [f"PROBLEM {problem}" for problem in problems] or ["No problems: every invariant holds."]
    return "\n".join(lines)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
