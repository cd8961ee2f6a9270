"""Reading the logs of a job on this machine: only what is new, a bounded part at a time, each attempt for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlejob.api.types import Phase
from paddlejob.local.log_reader import MOST_AT_ONCE, LogReader
from paddlejob.local.log_watch import LogWatch
from paddlejob.local.machine.ports import PortBlock
from paddlejob.plan import PodPhase
from paddlejob.progress import Parser
from tests.support.builders import NOON
from tests.unit.local.test_observe import Bench


class Watched(Bench):
    """A job whose pods run, as far as the engine knows, and whose logs a test writes."""

    def __init__(self, root: Path, **options: object) -> None:
        super().__init__(root, workers=2, **options)
        self.moment = 0.0
        self.reader = LogReader(self.engine.backend.kubelets[self.key], lambda: NOON, lambda: self.moment)

    async def begin(self, attempt: int = 1) -> None:
        self.objects.pods.clear()
        folder = self.objects.folder
        job = folder.job()
        assert job is not None
        folder.write_status(job.status.model_copy(update={"phase": Phase.RUNNING, "attempt": attempt}))
        self.objects.allocation.ports = self.objects.allocation.ports or PortBlock()
        await self.create_pods()
        for pod in self.objects.pods.values():
            pod.change(phase=PodPhase.RUNNING)

    def write(self, text: str, worker: int = 0, attempt: int = 1) -> None:
        log = self.objects.folder.log(attempt, f"mnist-worker-{worker}")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            file.write(text)

    async def silent_after(self, seconds: float) -> float | None:
        self.moment += seconds
        reading = await self.reader.look()
        assert reading is not None
        return reading.silent_seconds


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path, stallSeconds=60)
    yield made
    made.objects.allocation.clear()


async def test_each_line_is_read_once_also_one_that_comes_in_parts(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 0.5\nstep: 2")
    reading = watched.reader.read()
    assert reading is not None
    assert reading.step == 1
    watched.write("/9 loss: 0.25\n")
    reading = watched.reader.read()
    assert reading is not None
    assert (reading.step, reading.metrics) == (2, {"loss": 0.25})


async def test_a_progress_bar_without_an_end_of_line_is_read(watched: Watched):
    await watched.begin()
    watched.write("\rstep: 1/9 loss: 1\rstep: 2/9 loss: 1\r")
    reading = watched.reader.read()
    assert reading is not None
    assert reading.step == 2


async def test_the_newest_state_of_a_progress_bar_is_read_before_it_is_drawn_again(watched: Watched):
    await watched.begin()
    for step in (1, 2, 3):
        watched.write(f"\rEpoch 1/2:  {step}0%|#  | {step}/10 [00:10<00:17, 3.6it/s, loss={step}.5]")
        reading = watched.reader.read()
        assert reading is not None
        assert (reading.step, reading.metrics["loss"]) == (step, step + 0.5)


async def test_of_a_flood_of_output_only_the_end_is_read(watched: Watched):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n" + "x" * 3 * MOST_AT_ONCE + "\nstep: 7/9 loss: 0.1\n")
    reading = watched.reader.read()
    assert reading is not None
    assert (reading.step, reading.highest) == (7, 7)


async def test_the_next_attempt_is_read_from_its_own_log(watched: Watched):
    await watched.begin()
    watched.write("step: 8/9 loss: 1\n")
    assert watched.reader.read() is not None
    await watched.begin(attempt=2)
    reading = watched.reader.read()
    assert reading is not None
    assert (reading.attempt, reading.step, reading.last_lines) == (2, None, "")


async def test_any_worker_that_prints_ends_the_silence(watched: Watched):
    await watched.begin()
    assert await watched.silent_after(0) == 0
    assert await watched.silent_after(50) == 50
    watched.write("still here\n", worker=1)
    assert await watched.silent_after(5) == 0
    assert await watched.silent_after(59) == 59
    assert not watched.reader.hangs
    assert await watched.silent_after(1) == 60
    assert watched.reader.hangs


async def test_a_worker_that_has_succeeded_is_not_waited_for_and_one_that_starts_is(watched: Watched):
    await watched.begin()
    await watched.silent_after(0)
    watched.objects.pods["mnist-worker-0"].change(phase=PodPhase.SUCCEEDED)
    assert await watched.silent_after(30) == 30
    watched.objects.pods["mnist-worker-1"].change(phase=PodPhase.PENDING)
    assert await watched.silent_after(30) is None
    watched.objects.pods["mnist-worker-1"].change(phase=PodPhase.RUNNING)
    assert await watched.silent_after(30) == 0


async def test_nothing_is_read_where_progress_is_off(tmp_path: Path):
    watched = Watched(tmp_path, progress={"enabled": False})
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    assert watched.reader.read() is None
    assert await watched.reader.look() is None
    watched.objects.allocation.clear()


async def test_an_error_while_reading_is_logged_once_and_does_not_fail_the_job(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    await watched.begin()
    watched.write("step: 1/9 loss: 1\n")
    monkeypatch.setattr(Parser, "parse", lambda self, line: 1 // 0)
    watch = LogWatch(watched.engine.backend, lambda: NOON)
    for _ in range(3):
        watched.write("step: 2/9 loss: 1\n")
        watch.read(watched.key)
    assert capsys.readouterr().out.count("its log cannot be read") == 1
    assert watched.key not in watched.engine.backend.readings
