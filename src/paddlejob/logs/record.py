"""metrics.jsonl in a job's directory: every sample that the embedded engine has parsed from the log, with its time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from paddlejob.api.types import ProgressSpec
from paddlejob.logs.files import LogFile, append_lines, first_worker_logs
from paddlejob.logs.line import LogLine
from paddlejob.logs.series import SPARK_POINTS, Collector, LineParser, LoggedSample, Series, thinned
from paddlejob.logs.tail import Tail, sampled_lines
from paddlejob.progress import Sample

NAME = "metrics.jsonl"
MOST_BYTES = 8 << 20
"""About 80,000 samples; beyond, every second one is dropped."""
LAST_BYTES = 64 * 1024
"""Of the end of a record, among which a whole line is."""
NUMBER = re.compile(rb'\{"number": (\d+),')
MOST_PARSED = 16 << 20
"""Bytes at the end of a log without a record that are parsed: a line takes 25 us."""
BATCH = 1000


class Recorder:
    """Appends to the record of one job. It exists from before the first attempt on; samples are numbered from 1.

    Attempts that are in the record already were recorded by another engine, and are not recorded again.
    """

    def __init__(self, job: Path, name: str, spec: ProgressSpec | None) -> None:
        self._path = job / NAME
        self._number = self._before = 0
        if not self._path.exists():
            self._path.touch()
            self.append(_Logs(job, name, spec).news(over=True))
        for number, last in _decoded(Tail(self._path, first=LAST_BYTES).read().lines):
            self._number, self._before = number, last.attempt

    def append(self, samples: Iterable[LoggedSample]) -> None:
        new = (one for one in samples if one.attempt > self._before)
        lines = b"".join(_encode(number, one) for number, one in enumerate(new, self._number + 1))
        if not lines:
            return
        self._number += lines.count(b"\n")
        if append_lines(self._path, lines) > MOST_BYTES:
            self._thin_out()

    def _thin_out(self) -> None:
        """Keep at most half of the samples, evenly over the whole training, and the newest."""
        found = (NUMBER.match(line) for line in self._path.read_bytes().split(b"\n"))
        numbered = [(int(match[1]), match.string) for match in found if match]
        stride = 2
        while sum(number % stride == 0 for number, _ in numbered) > len(numbered) // 2:
            stride *= 2
        kept = (line for number, line in numbered if number % stride == 0 or number == self._number)
        new = self._path.with_suffix(".new")
        new.write_bytes(b"".join(line + b"\n" for line in kept))
        new.replace(self._path)


class SampleReader:
    """The samples of a job, read on from where reading stopped: from its record, or from its logs if it has none."""

    def __init__(self, job: Path, name: str, spec: ProgressSpec | None) -> None:
        self._record = _Record(job)
        self._logs = _Logs(job, name, spec)
        self._source: _Record | _Logs | None = None

    def news(self, over: bool) -> Iterator[LoggedSample]:
        """A job that has begun to train has a record, unless an earlier version runs it or its progress is not read."""
        if self._source is None and self._record.exists:
            self._source = self._record
        elif self._source is None and (over or self._logs.exist):
            self._source = self._logs
        return self._source.news(over) if self._source else iter(())


class JobSeries:
    """The curves of a job, read on from where reading stopped."""

    def __init__(self, job: Path, name: str, spec: ProgressSpec | None) -> None:
        self._samples = SampleReader(job, name, spec)
        self._collector = Collector()

    def read(self, over: bool) -> Series:
        self._collector.add(self._samples.news(over))
        return self._collector.series()


def read_samples(
    job: Path, name: str, spec: ProgressSpec | None, over: Callable[[], bool] | None = None
) -> Iterator[list[LoggedSample]]:
    """All samples, in batches; with `over`, also those that are added until it is true.

    An empty batch means that nothing was added, and that the caller should wait before the next.
    """
    reader, done = SampleReader(job, name, spec), False
    while not done:
        done = over is None or over()
        samples = reader.news(done)
        while batch := list(islice(samples, BATCH)):
            yield batch
        if not done:
            yield []


def spark(job: Path) -> tuple[float, ...]:
    """The shape of a job's loss, from a few lines of its record: a page may list hundreds of jobs."""
    samples = _decoded(sampled_lines(job / NAME, SPARK_POINTS))
    values = [one.sample.metrics["loss"] for _, one in samples if "loss" in one.sample.metrics]
    return tuple(values[index] for index in thinned(values, SPARK_POINTS))


class _Record:
    def __init__(self, job: Path) -> None:
        self._path = job / NAME
        self._tail = Tail(self._path)
        self._read = 0
        """The number of the last sample. A record that was thinned out is read again from its beginning."""

    @property
    def exists(self) -> bool:
        return self._path.exists()

    def news(self, over: bool) -> Iterator[LoggedSample]:
        for piece in self._tail.pieces():
            for number, one in _decoded(piece.lines):
                if number > self._read:
                    self._read = number
                    yield one


class _Logs:
    """The samples of a run without a record: of an earlier version, or one whose progress the engine does not read."""

    def __init__(self, job: Path, name: str, spec: ProgressSpec | None) -> None:
        self._job = job
        self._name = name
        self._parser = LineParser(spec)
        self._tails: dict[Path, Tail] = {}

    @property
    def exist(self) -> bool:
        return bool(first_worker_logs(self._job, self._name))

    def news(self, over: bool) -> Iterator[LoggedSample]:
        for log in first_worker_logs(self._job, self._name):
            tail = self._tails.setdefault(log.path, Tail(log.path, first=MOST_PARSED))
            yield from self._parser.samples(_lines(log, tail, over))


def _lines(log: LogFile, tail: Tail, over: bool) -> Iterator[LogLine]:
    for news in tail.pieces():
        yield from (LogLine(log.replica, log.attempt, None, line) for line in news.lines)
    yield LogLine(log.replica, log.attempt, None, tail.take_rest() if over else tail.take_states())


def _encode(number: int, one: LoggedSample) -> bytes:
    fields = ((name, getattr(one.sample, name)) for name in Sample.__slots__)
    told = {name: value for name, value in fields if value not in (None, {})}
    return json.dumps({"number": number, "attempt": one.attempt, "time": one.time, **told}).encode() + b"\n"


def _decoded(lines: Iterable[bytes]) -> Iterator[tuple[int, LoggedSample]]:
    """Each sample with its number. Lines that are damaged are left out."""
    for line in lines:
        try:
            fields = json.loads(line)
            yield fields.pop("number"), LoggedSample(fields.pop("attempt"), fields.pop("time"), Sample(**fields))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
