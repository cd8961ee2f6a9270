"""Figures of benchmarks: `make bench` writes each one that the documentation draws."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench import figures, operator
from bench.__main__ import BENCHMARKS
from bench.goodput import PARTS, arguments
from tools.docs.pictures import goodput, pods, recovery

FAULTS = [arguments(list(options)) for module, *options in BENCHMARKS if module == "goodput"]


def test_a_figure_says_when_and_on_which_machine_it_was_measured(tmp_path: Path):
    file = tmp_path / "figures.json"
    figures.record("operator", "1x1000", {"created": 3.614}, file)
    figures.record("operator", "500x4", {"created": 9.0}, file)
    figures.record("operator", "1x1000", {"created": 3.5}, file)
    found = figures.read("operator", file)
    assert {case: one.values for case, one in found.items()} == {"1x1000": {"created": 3.5}, "500x4": {"created": 9.0}}
    assert found["1x1000"].date == f"{datetime.now(UTC):%Y-%m-%d}"
    assert "CPUs" in found["1x1000"].machine


def test_every_figure_that_is_drawn_is_measured():
    assert pods.CASES.keys() <= {*operator.CASES}
    assert recovery.KINDS.keys() <= {kind for run in FAULTS if run.engine == "cluster" for kind in run.kind}
    assert recovery.PARTS.keys() == PARTS.keys()
    kept = {f"{run.engine} {run.job}" for run in FAULTS if {*run.kind} == {"kill", "delete"}}
    assert goodput.CASES.keys() == kept


@pytest.mark.parametrize("module", sorted({module for module, *_ in BENCHMARKS}))
def test_every_benchmark_exists(module: str):
    assert (Path(figures.__file__).parent / f"{module}.py").is_file()
