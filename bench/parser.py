"""Lines per second of the progress parser, compared with one plain regular expression over the same lines.

python -m bench.parser
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from paddlejob.api.types import ProgressSpec
from paddlejob.progress import Parser
from tests.unit.progress.test_formats import FORMATS

PLAIN = re.compile(r"(\w+)\s*[=:]\s*([0-9.eE+-]+)")
SECONDS = 0.5
NOISE = (
    "I0102 03:04:05.678901   123 gloo_context.cc:55] connected to 10.0.0.1:6170, rank 1, in 12 ms",
    "/usr/lib/python3/site-packages/paddle/utils.py:711: UserWarning: no ccache found",
)
UNITS = (
    "a",
    "1",
    "[",
    "=",
    "a=",
    "1,",
    "{",
    '{"a":',
    "37%|",
    "\x1b[",
    "epoch 1/2 ",
    "loss=1 ",
    "saved checkpoint step ",
)
"""Repeated, they make lines that cost the parser most."""
OWN = ProgressSpec(pattern=r"step[ =](?P<step>\d+)(?:/(?P<total_steps>\d+))?.*loss[ =](?P<loss>\S+)")


def main() -> None:
    formats = [line for line, _ in FORMATS.values()]
    report("known formats", formats, Parser().parse)
    report("lines of the framework", NOISE, Parser().parse)
    report("a pattern of the job's own", formats, Parser(OWN).parse)
    for size in (4_000, 1_000_000):
        lines = [f"step {unit * (size // len(unit))}" for unit in UNITS]
        slowest = max(lines, key=lambda line: 1 / rate([line], Parser().parse))
        report(f"the slowest of {len(UNITS)} lines of {size:,} characters", [slowest], Parser().parse)


def report(title: str, lines: Sequence[str], parse: Callable[[str], object]) -> None:
    ours, plain = rate(lines, parse), rate(lines, PLAIN.findall)
    print(f"{title:50} {ours:9,.0f} lines/s  {1e6 / ours:8,.1f} us  {plain / ours:5.1f} x one expression", flush=True)


def rate(lines: Sequence[str], parse: Callable[[str], object]) -> float:
    """Lines per second of processor time."""
    count, begun = 0, time.process_time()
    while time.process_time() - begun < SECONDS:
        for line in lines:
            parse(line)
        count += len(lines)
    return count / (time.process_time() - begun)


if __name__ == "__main__":
    main()
