"""The samples that a worker trains on: its part of the files in a directory, or generated data."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import criteo
import numpy as np

GENERATED_SAMPLES = 20_000
HELD_OUT_SAMPLES = 2_000


class Shard(NamedTuple):
    """The files that a worker reads, and which of their lines."""

    files: list[Path]
    part: criteo.Part


class Batch(NamedTuple):
    label: Any
    counts: Any
    ids: Any


@contextlib.contextmanager
def shard(data_dir: Path | None, samples: int, worker: int, workers: int) -> Iterator[Shard]:
    """The shard of one worker; generated files are removed on exit."""
    if data_dir:
        yield _assign_files(data_dir, samples, worker, workers)
        return
    with tempfile.TemporaryDirectory(prefix="clicks-") as directory:
        file = Path(directory) / f"part-{worker}"
        file.write_text("\n".join(criteo.generate(samples or GENERATED_SAMPLES, seed=worker)))
        yield Shard([file], criteo.Part())


def _assign_files(data_dir: Path, samples: int, worker: int, workers: int) -> Shard:
    """Whole files if there are enough for all workers, otherwise every n-th line of each file."""
    files = sorted(path.resolve() for path in data_dir.glob("*") if path.is_file())
    if not files:
        sys.exit(f"DATA_DIR {data_dir}: no files found; add files in Criteo's format, or unset DATA_DIR")
    if len(files) >= workers:
        return Shard(files[worker::workers], criteo.Part(limit=samples))
    return Shard(files, criteo.Part(worker, workers, samples))


def held_out(shard: Shard) -> Batch:
    """The samples of these files that no worker trains on."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(file.open(encoding="utf-8")) for file in shard.files]
        rows = chain.from_iterable(criteo.read(lines, criteo.Part(), held_out=True) for lines in opened)
        found = list(islice(rows, HELD_OUT_SAMPLES))
    if not found:
        sys.exit(f"{shard.files[0]}: too few samples; at least {criteo.HELD_OUT_EVERY} lines are required")
    return Batch(
        np.array([[row.label] for row in found], "int64"),
        np.array([row.counts for row in found], "float32"),
        np.array([row.ids for row in found], "int64"),
    )
