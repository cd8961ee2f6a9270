"""Observes jobs on a cluster: the end of one log, and what the metrics API reports."""

from __future__ import annotations

from contextlib import suppress

from paddlejob.client.describe.log_tail import readable
from paddlejob.client.targets import pod_log
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.client.targets.logs import has_started
from paddlejob.client.targets.target import JobView, LogChoice, LogLine, PodView
from paddlejob.client.watch.losses import Losses
from paddlejob.client.watch.observation import Observation, pods_to_quote, without_framework
from paddlejob.client.watch.usage import PodMeter
from paddlejob.errors import BadInput, KubeError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import PODS

FIRST_LINES = 2000
"""Lines of the first worker from which the loss is read when watching begins; later it is taken from the status."""
MOST_LINES = 200


class ClusterObserver:
    def __init__(self, target: ClusterTarget) -> None:
        self._target = target
        self._meter = PodMeter()
        self._losses: dict[str, tuple[Losses, int | None]] = {}

    def observe(self, view: JobView, lines: int) -> Observation:
        return self._target.with_client(lambda client: self._observe(client, view, lines))

    async def _observe(self, client: Client, view: JobView, lines: int) -> Observation:
        quoted = next((pod for pod in pods_to_quote(view) if pod.state not in ("Pending", "Waiting")), None)
        text = await _last_lines(client, view, quoted, min(MOST_LINES, 3 * lines)) if quoted and lines else []
        shown = readable("\n".join(text), lines, without_framework(view, quoted)) if quoted else []
        losses = await self._read_losses(client, view)
        return Observation(
            quoted.replica if quoted else "", tuple(shown), losses.values, await self._meter.read(client, view)
        )

    async def _read_losses(self, client: Client, view: JobView) -> Losses:
        """Those in the log when watching began, then each that the status reports with a new step."""
        progress, uid = view.job.status.progress, view.job.metadata.uid
        losses, step = self._losses.get(uid, (None, None))
        if losses is None:
            losses = Losses(view.job.spec.progress)
            first = next((pod for pod in view.pods if pod.role == "worker" and pod.state == "Running"), None)
            if first is None:
                return losses
            text = await _last_lines(client, view, first, FIRST_LINES)
            losses.read(LogLine(first.attempt, line) for line in text)
        elif progress and progress.step != step and "loss" in progress.metrics:
            losses.add(progress.metrics["loss"])
        self._losses[uid] = (losses, progress.step if progress else None)
        return losses


async def _last_lines(client: Client, view: JobView, pod: PodView, count: int) -> list[str]:
    """Empty if the log cannot be read now: the view goes on without it."""
    found: list[str] = []
    with suppress(KubeError, BadInput):
        document = await client.get(PODS, pod.name, view.job.namespace)
        if has_started(document, LogChoice()):
            choice = LogChoice(tail=count)
            found = [line.decode(errors="replace") async for line in pod_log.read(client, document, choice)]
    return found
