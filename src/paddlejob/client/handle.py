"""A handle of a job that was started: its state, its output, and what can be done with it."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from paddlejob.api.types import Phase, Status
from paddlejob.errors import JobFailed, NotPossible, Overloaded, Unreachable
from paddlejob.logs.line import LogLine
from paddlejob.logs.selection import LogSelection, line_pattern
from paddlejob.targets.sync import SyncTarget
from paddlejob.targets.views import JobView, has_ended

if TYPE_CHECKING:
    from paddlejob.local.runner import AttachedRunner


class Run:
    """One job on one target. Every method with `_async` behind its name is awaited instead of waiting."""

    def __init__(self, target: SyncTarget, namespace: str, name: str, runner: AttachedRunner | None = None) -> None:
        self.target = target
        self.namespace = namespace
        self.name = name
        self._runner = runner
        self._seen: JobView | None = None
        self._lost = False

    def __repr__(self) -> str:
        return f"<Run {self.namespace}/{self.name}>"

    def view(self) -> JobView:
        """The job as `pdj get` shows it: phase, replicas, events."""
        return self.target.job(self.namespace, self.name)

    @property
    def status(self) -> Status:
        return self.view().job.status

    @property
    def phase(self) -> str:
        """Created, Pending, Starting, Running, Restarting, Suspended, Interrupted, Deleting, Completed or Failed."""
        return self.view().phase

    def why(self) -> str:
        """The text of `pdj why`."""
        from paddlejob.client.describe.explain import explain

        view = self.view()
        return str(explain(view, self.target.last_output(view)))

    def logs(
        self,
        *,
        follow: bool = False,
        role: str = "",
        index: int | None = None,
        attempt: int = 0,
        tail: int = -1,
        since: float | None = None,
        grep: str = "",
        run: int = 0,
    ) -> Iterator[str]:
        """Lines of the logs, without line ends. With several replicas each line starts with the replica's name.

        `since` is in seconds before now; `grep` is a regular expression; `run` is the number of a previous run.
        Interrupting it ends a job of `run` and its processes, as interrupting `wait` does.
        """
        selection = _selection(role, index, attempt, tail, since, grep, run)
        try:
            several, batches = self.target.logs(self.namespace, self.name, selection, follow, _warn_of_retry)
            text = _Text(several)
            for batch in batches:
                yield from text.lines(batch)
            yield from text.rest()
        except KeyboardInterrupt:
            self.interrupt()
            raise

    def metrics(self, name: str = "loss") -> list[tuple[int, float]]:
        """The values of a metric, each with its step, read from the log of the first worker in every attempt.

        Where the log tells no steps, each value has its epoch.
        """
        samples = (one.sample for one in self.target.samples(self.namespace, self.name))
        found = [one for one in samples if name in one.metrics]
        by_step = [(one.step, one.metrics[name]) for one in found if one.step is not None]
        return by_step or [(one.epoch, one.metrics[name]) for one in found if one.epoch is not None]

    def wait(self, timeout: float | None = None) -> Status:
        """Wait until the job ends; raises JobFailed if it failed, and TimeoutError.

        Interrupting it ends a job of `run` and its processes, as Ctrl-C ends `pdj run`.
        """
        return self._wait(timeout, lambda at_once: None)

    def watch(self, timeout: float | None = None) -> Status:
        """The same, and a notebook shows the state, the replicas and the loss of the job while it runs."""
        from paddlejob.client.notebook import live_page

        return self._wait(timeout, live_page(self))

    def _wait(self, timeout: float | None, show: Callable[[bool], None]) -> Status:
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while not has_ended(view := self._look()):
                show(False)
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError(f"{self.name} is still {view.phase} after {timeout:g} s")
                time.sleep(self.target.pause)
        except KeyboardInterrupt:
            self.interrupt()
            raise
        finally:
            show(True)
        return _result(view)

    def _look(self) -> JobView:
        """The job as it is, or as last seen: training goes on while a cluster does not answer."""
        try:
            self._seen, self._lost = self.view(), False
        except (Unreachable, Overloaded) as error:
            if self._seen is None:
                raise
            if not self._lost:
                warnings.warn(f"{error}; trying again", stacklevel=4)
            self._lost = True
        return self._seen

    def interrupt(self) -> None:
        """End the processes of a job that `run` started here; it can be resumed. Jobs on a cluster are left alone."""
        if self._runner is None:
            return
        self._runner.interrupt()
        deadline = time.monotonic() + GRACE
        while self._runner.alive and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._runner.alive:
            self._runner.kill()
        while self._runner.alive:
            time.sleep(0.05)

    def scale(self, workers: int) -> None:
        self.target.change(self.namespace, self.name, worker={"replicas": workers})

    def suspend(self) -> None:
        self.target.change(self.namespace, self.name, suspend=True)

    def resume(self) -> None:
        """Continue a suspended or interrupted job; if its engine has ended, it then outlives this process."""
        self.target.change(self.namespace, self.name, suspend=False)

    def rerun(self) -> None:
        """Run a finished job again, from the start and in the background; it outlives this process."""
        from paddlejob.client.start.rerun import rerun
        from paddlejob.targets.sync import run_outside_loop

        for message in run_outside_loop(rerun(self.target.target, self.namespace, self.name)):
            warnings.warn(message, stacklevel=2)
        self._runner = None

    def delete(self) -> None:
        """Stop the job and delete it with its logs; returns when its processes or pods are gone."""
        self.target.delete(self.namespace, self.name, wait=True)

    async def wait_async(self) -> Status:
        """Limit the time with asyncio.timeout."""
        while True:
            view = await asyncio.to_thread(self._look)
            if has_ended(view):
                return _result(view)
            await asyncio.sleep(self.target.pause)

    async def logs_async(self, *, follow: bool = False, **choice: Any) -> AsyncGenerator[str, None]:
        """The same as `logs`, with the same arguments."""
        target, selection = self.target.target, _selection(**choice)
        stream = await target.logs(self.namespace, self.name, selection, follow, _warn_of_retry)
        text = _Text(stream.several)
        async with aclosing(stream.batches) as batches:
            async for batch in batches:
                for line in text.lines(batch):
                    yield line
        for line in text.rest():
            yield line

    async def status_async(self) -> Status:
        return (await asyncio.to_thread(self.view)).job.status

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from paddlejob.client.notebook import page

        return page(self)


GRACE = 40.0
"""Seconds: a little more than pods have by default to save a checkpoint."""


def _selection(
    role: str = "",
    index: int | None = None,
    attempt: int = 0,
    tail: int = -1,
    since: float | None = None,
    grep: str = "",
    run: int = 0,
) -> LogSelection:
    moment = None if since is None else max(0.0, time.time() - since)
    return LogSelection(role, index, attempt, "", tail, moment, run, line_pattern(grep) if grep else None)


class _Text:
    """Whole lines as text; the part of a line that has been printed so far waits for its end."""

    def __init__(self, several: bool) -> None:
        self._several = several
        self._part = b""

    def lines(self, batch: list[LogLine]) -> Iterator[str]:
        for line in batch:
            self._part += line.named() if self._several else line.content
            if line.end:
                yield from self.rest()

    def rest(self) -> Iterator[str]:
        part, self._part = self._part, b""
        if part:
            yield part.decode(errors="replace")


def _warn_of_retry(reason: str) -> None:
    warnings.warn(f"{reason}; trying again", stacklevel=2)


def _result(view: JobView) -> Status:
    status = view.job.status
    if status.phase is Phase.COMPLETED:
        return status
    if status.phase is Phase.FAILED:
        raise JobFailed(f"{view.job.name} failed: {status.reason}: {status.message}", status.reason, status.message)
    raise NotPossible(f"{view.job.name}: {view.headline or view.phase}")
