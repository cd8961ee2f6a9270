"""A handle of a job that was started: its state, its output, and what can be done with it."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from paddlejob.api.types import Phase, Status
from paddlejob.client.async_lines import async_lines
from paddlejob.client.describe.log_lines import line_pattern, lines_of
from paddlejob.client.targets.target import JobView, LogChoice, Target, has_ended
from paddlejob.errors import JobFailed, NotPossible, Overloaded, Unreachable

if TYPE_CHECKING:
    from paddlejob.local.runner import AttachedRunner

PAUSE = 0.2
CLUSTER_PAUSE = 1.0


class Run:
    """One job on one target. Every method with `_async` behind its name is awaited instead of waiting."""

    def __init__(self, target: Target, namespace: str, name: str, runner: AttachedRunner | None = None) -> None:
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

        `since` is in seconds before now; `grep` is a regular expression; `run` is the number of a former run.
        Interrupting it ends a job of `run` and its processes, as interrupting `wait` does.
        """
        choice = LogChoice(
            role,
            index,
            attempt,
            "",
            follow,
            tail,
            since=None if since is None else max(0.0, time.time() - since),
            run=run,
            pattern=line_pattern(grep) if grep else None,
        )
        try:
            for line in lines_of(self.target.logs(self.namespace, self.name, choice)):
                yield line.removesuffix(b"\n").decode(errors="replace")
        except KeyboardInterrupt:
            self.interrupt()
            raise

    def metrics(self, name: str = "loss") -> list[tuple[int, float]]:
        """The values of a metric, each with its step, read from the log of the first worker in every attempt.

        Where the log tells no steps, each value has its epoch.
        """
        from paddlejob.client.series import SeriesReader

        reader = SeriesReader(self.view().job.spec.progress)
        rows = reader.rows(self.target.first_worker_log(self.namespace, self.name, follow=False))
        found = [row.sample for row in rows if name in row.sample.metrics]
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
                time.sleep(self._pause)
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

    def scale(self, workers: int) -> None:
        self.target.change(self.namespace, self.name, worker={"replicas": workers})

    def suspend(self) -> None:
        self.target.change(self.namespace, self.name, suspend=True)

    def resume(self) -> None:
        self.target.change(self.namespace, self.name, suspend=False)

    def delete(self) -> None:
        """Stop the job and delete it with its logs; returns when its processes or pods are gone."""
        self.target.delete(self.namespace, self.name, wait=True)

    async def wait_async(self) -> Status:
        """Limit the time with asyncio.timeout."""
        while True:
            view = await asyncio.to_thread(self._look)
            if has_ended(view):
                return _result(view)
            await asyncio.sleep(self._pause)

    async def logs_async(self, **choice: Any) -> AsyncGenerator[str, None]:
        async with aclosing(async_lines(self.logs(**choice))) as lines:
            async for line in lines:
                yield line

    async def status_async(self) -> Status:
        return (await asyncio.to_thread(self.view)).job.status

    @property
    def _pause(self) -> float:
        from paddlejob.client.targets.local import LocalTarget

        return PAUSE if isinstance(self.target, LocalTarget) else CLUSTER_PAUSE

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from paddlejob.client.notebook import page

        return page(self)


GRACE = 40.0
"""Seconds: a little more than pods have by default to save a checkpoint."""


def _result(view: JobView) -> Status:
    status = view.job.status
    if status.phase is Phase.COMPLETED:
        return status
    if status.phase is Phase.FAILED:
        raise JobFailed(f"{view.job.name} failed: {status.reason}: {status.message}", status.reason, status.message)
    raise NotPossible(f"{view.job.name}: {view.headline or view.phase}")
