"""Which samples each worker trains on.

The samples of a step depend on the step alone; the workers of this attempt divide them among themselves. A job that
continues with more or fewer workers therefore neither skips nor repeats a sample, and its steps stay comparable.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np


class Shard:
    """The indexes of one worker for each step after `begin`, to use as a batch sampler."""

    def __init__(self, samples: int, batch: int, *, epochs: int, worker: int, workers: int) -> None:
        if not workers <= batch <= samples:
            sys.exit(
                f"BATCH_SIZE {batch} is outside {workers} (the workers) to {samples} (the samples); "
                "choose a value in that range"
            )
        self.samples = samples
        self.batch = batch
        self.worker = worker
        self.workers = workers
        self.steps_per_epoch = samples // batch
        self.steps = self.steps_per_epoch * epochs
        self.begin = 0

    def __len__(self) -> int:
        return max(0, self.steps - self.begin)

    def __iter__(self) -> Iterator[list[int]]:
        for epoch in range(self.begin // self.steps_per_epoch, self.steps // self.steps_per_epoch):
            order = np.random.default_rng(epoch).permutation(self.samples)
            done = max(0, self.begin - epoch * self.steps_per_epoch)
            for turn in range(done, self.steps_per_epoch):
                yield order[turn * self.batch : (turn + 1) * self.batch][self.worker :: self.workers].tolist()
