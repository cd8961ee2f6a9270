"""Observes jobs on this machine by their log files and processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from paddlejob.client.describe.log_tail import last_lines
from paddlejob.client.targets.first_worker_file import log_files, new_lines
from paddlejob.client.targets.target import JobView
from paddlejob.client.watch.gpus import GpuMeter
from paddlejob.client.watch.losses import Losses
from paddlejob.client.watch.observation import Observation, pods_to_quote, without_framework
from paddlejob.client.watch.usage import ProcessMeter, Usage
from paddlejob.engine.backend import Key
from paddlejob.local.state.store import Store

MOST_READ = 4 << 20
"""Bytes of a log that are read at once; of a longer one, the loss is shown from there on."""


class MachineObserver:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._meter = ProcessMeter()
        self._gpus = GpuMeter()
        self._logs: dict[Key, _LossLog] = {}

    def observe(self, view: JobView, lines: int) -> Observation:
        quoted = next((pod for pod in pods_to_quote(view) if pod.log and Path(pod.log).exists()), None)
        return Observation(
            quoted.replica if quoted else "",
            tuple(last_lines(Path(quoted.log), lines, 8192 + 256 * lines, without_framework(view, quoted)))
            if quoted and lines
            else (),
            self._losses(view),
            self._usage(view),
        )

    def _losses(self, view: JobView) -> tuple[float, ...]:
        key, uid = (view.job.namespace, view.job.name), view.job.metadata.uid
        log = self._logs.get(key)
        if log is None or log.uid != uid:
            log = self._logs[key] = _LossLog(uid, Losses(view.job.spec.progress))
        log.read(log_files(self._store.folder(key)))
        return log.losses.values

    def _usage(self, view: JobView) -> dict[str, Usage]:
        return {pod.name: usage for pod in view.pods if pod.pid and (usage := self._usage_of(pod.pid))}

    def _usage_of(self, pid: int) -> Usage | None:
        usage, gpu = self._meter.read(pid), self._gpus.read(pid)
        return replace(usage, gpu=gpu[0], gpu_memory=gpu[1]) if usage and gpu else usage


class _LossLog:
    """The logs of a job's first worker; each is read on from where reading stopped."""

    def __init__(self, uid: str, losses: Losses) -> None:
        self.uid = uid
        self.losses = losses
        self._offsets: dict[Path, int] = {}

    def read(self, logs: dict[int, Path]) -> None:
        for attempt, path in logs.items():
            size, offset = _size(path), self._offsets.get(path, 0)
            if size <= offset:
                continue
            try:
                with path.open("rb") as file:
                    file.seek(max(offset, size - MOST_READ))
                    self.losses.read(new_lines(file, attempt, partial=False))
                    self._offsets[path] = file.tell()
            except OSError:
                continue


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
