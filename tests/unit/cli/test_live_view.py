"""The live view of a job: how it uses the terminal, and what its charts show."""

from __future__ import annotations

import io
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paddlejob.cli.run.charts import LEVELS, bar, sparkline
from paddlejob.cli.run.live import render
from paddlejob.cli.run.observation import Observation
from paddlejob.client.describe.humanize import size
from paddlejob.plan import times
from paddlejob.targets.local.gpu_meter import GpuMeter
from paddlejob.targets.local.process_meter import ProcessMeter
from paddlejob.targets.log_views import LastLines
from paddlejob.targets.views import JobView, PodView, Usage
from tests.support.builders import job
from tests.support.fake_gpus import fake_driver, new_uuid


def view(replicas: int = 2, **progress: Any) -> JobView:
    pods = [PodView(f"mnist-worker-{index}", "worker", index, "Running") for index in range(replicas)]
    status = {"phase": "Running", "attempt": 1, "message": "all pods are running", "progress": progress}
    return JobView(job(status=status), {}, "Running", pods=pods)


def drawn(shown: JobView, seen: Observation, height: int, width: int = 100) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(render(shown, seen, height, width))
    return console.export_text().splitlines()


@pytest.mark.parametrize("height", [16, 24, 40, 80])
@pytest.mark.parametrize("replicas", [1, 4, 100])
def test_the_view_uses_the_height_of_the_terminal_and_no_more(height: int, replicas: int):
    seen = Observation(LastLines("worker-0", tuple(f"line {number}" for number in range(200))), (3.0, 2.0, 1.0))
    lines = drawn(view(replicas, step=3, totalSteps=10, metrics={"loss": 1.0}), seen, height)
    assert len(lines) == height - 1
    assert lines[-1].strip() == "line 199"


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_long_message_in_a_narrow_terminal_does_not_push_the_newest_lines_out(width: int):
    seen = Observation(LastLines("worker-0", tuple(f"line {number}" for number in range(200))), (3.0, 2.0, 1.0))
    shown = replace(view(2, step=3, totalSteps=10, metrics={"loss": 1.0}), note="insufficient memory on all nodes " * 4)
    lines = drawn(shown, seen, 24, width)
    assert len(lines) == 23
    assert lines[-1].strip() == "line 199"


def test_progress_has_a_bar_and_the_time_left():
    eta = times.format(time.time() + 300)
    lines = drawn(view(step=30, totalSteps=120, metrics={"loss": 0.5}, eta=eta), Observation(), 24)
    assert any("step 30/120, loss 0.5, ETA" in line for line in lines)
    assert any("━" in line and line.endswith("25%") for line in lines)


def test_without_a_known_end_there_is_no_bar():
    assert not any("%" in line for line in drawn(view(step=30), Observation(), 24))


def test_the_loss_has_a_sparkline_with_both_ends():
    falling = tuple(4.0 / (1 + step) for step in range(500))
    (line,) = [line for line in drawn(view(step=1), Observation(losses=falling), 24) if line.startswith("loss ")]
    assert LEVELS[-1] in line and LEVELS[0] in line
    assert line.endswith(" 4 → 0.008")


def test_replicas_show_what_they_use():
    used = {"mnist-worker-0": Usage(1.5, 3 << 30), "mnist-worker-1": Usage(None, 200 << 20)}
    header, first, second = drawn(view(), Observation(usage=used), 24)[2:5]
    assert header.split() == ["REPLICA", "STATE", "CPU", "MEMORY", "ADDRESS", "EXIT"]
    assert first.split() == ["worker-0", "Running", "1.5", "3.0Gi"]
    assert second.split() == ["worker-1", "Running", "200Mi"]


def test_gpus_have_columns_only_where_the_driver_reports_them():
    used = {"mnist-worker-0": Usage(1.5, 3 << 30, 87.0, 40 << 30)}
    header, first, *_ = drawn(view(), Observation(usage=used), 24)[2:]
    assert "GPU" in header
    assert first.split()[-2:] == ["87%", "40Gi"]


@pytest.mark.parametrize(("fraction", "full"), [(0.0, 0), (0.5, 10), (1.0, 20), (2.0, 20), (-1.0, 0)])
def test_a_bar_is_always_as_long_as_its_width(fraction: float, full: int):
    done, left = bar(fraction, 20)
    assert (len(done), len(done + left)) == (full, 20)


def test_a_sparkline_is_never_longer_than_its_width_and_flat_where_nothing_changes():
    assert len(sparkline([math.sin(value) for value in range(1000)], 40)) == 40
    assert sparkline([2.0, 2.0, 2.0], 40) == LEVELS[0] * 3
    assert sparkline([], 40) == ""


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (1536, "1.5Ki"), (200 << 20, "200Mi"), (3 << 40, "3.0Ti")]
)
def test_sizes_read_as_kubernetes_writes_them(count: int, text: str):
    assert size(count) == text


def test_cpu_and_memory_of_a_process_include_its_children():
    child = f"held = bytearray({100 << 20})\nwhile True: pass"
    busy = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    started = subprocess.Popen([sys.executable, "-c", busy], start_new_session=True)
    try:
        meter, deadline = ProcessMeter(), time.monotonic() + 30
        while time.monotonic() < deadline:
            used = meter.read(started.pid)
            assert used
            if used.cpu and used.memory and used.memory > 100 << 20:
                break
            time.sleep(0.1)
        assert used.cpu and used.cpu > 0.01
        assert used.memory and used.memory > 100 << 20
    finally:
        os.killpg(started.pid, 9)
        started.wait()
    assert meter.read(started.pid) is None


def test_a_replica_uses_the_gpus_that_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The library is a stand-in for the driver's; there is no GPU here."""
    first, second = new_uuid(), new_uuid()
    for name, value in fake_driver(tmp_path, f"{first}|H100|20 {second}|H100|80").items():
        monkeypatch.setenv(name, value)
    meter = GpuMeter()
    assert meter.use_of([second]) == (80, 80 << 30)
    assert meter.use_of([first, second]) == (50, 100 << 30)
    assert meter.use_of(["GPU-of-another-machine"]) == meter.use_of([]) == (None, None)
