"""The step over the whole training, from lines that may count within an epoch only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from paddlejob.progress.bars import Bar
from paddlejob.progress.facts import Count, Facts
from paddlejob.progress.numbers import DIGITS, whole

GLOBAL_STEP = ("global_step", "trainer/global_step", "globalstep", "num_updates")
STEP = ("step", "train/step", "train_step", "current_step", "cur_step", "iter", "iteration")
TOTAL_STEPS = ("total_steps", "max_steps", "total_iters", "max_iters", "num_training_steps")
EPOCH = ("epoch", "progress_or_epoch", "train/epoch", "cur_epoch")
TOTAL_EPOCHS = ("total_epochs", "max_epochs", "num_epochs", "num_train_epochs")
ANNOUNCED_TOTAL = re.compile(
    r"(?<![\w-])(?:total|max|num)(?: optimization| training| train)? (?:step|iter|iteration)s?\s{0,4}+[:=]\s{0,4}+"
    rf"({DIGITS})"
)
FROM_DATASET = re.compile(r"(?<!\w)time: \[[^\]]{0,60}\], batch: \[(\d{1,9})\]")
"""`executor.train_from_dataset` counts the batches of one call, which most programs make for each epoch."""
REREAD = 100
"""Lines of which the step is kept, because a log may be read again from a little before where it was."""
MODEL_FIT = re.compile(r"\d(?:us|ms|s)/step")
"""Ends the lines of Model.fit, whose steps count within the epoch of an earlier line."""


@dataclass(frozen=True, slots=True)
class Position:
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    total_epochs: int | None = None


class Positions:
    """Reads the lines of one log in order: the number of an epoch may be on a line before those of its steps."""

    def __init__(self) -> None:
        self._heading: Count | None = None
        self._total_steps: float | None = None
        self._epochs_from_zero = False
        self._last: tuple[float, float] | None = None
        """The epoch and the step of the last line that has both."""
        self._batches: dict[str, int] = {}
        """The step of each of the last lines of `train_from_dataset`."""
        self._earlier_calls = self._batch = 0
        self._within_epochs: bool | None = None
        """Whether steps count within each epoch; None if that is not known yet."""

    def of(self, text: str, facts: Facts, bar: Bar | None) -> Position:
        """The position that a line in lower case tells."""
        epoch = _epoch(facts)
        if epoch and epoch.total and epoch.value == 0:
            self._epochs_from_zero = True
        if announced := _value(facts, TOTAL_STEPS) or _announced(text):
            self._total_steps = announced
        found = _global_step(facts) or self._over_calls(text) or self._whole_training(text, facts, bar, epoch)
        if _is_heading(facts, bar, epoch):
            self._heading = epoch
        return self._position(found, epoch or (self._heading if found else None), announced)

    def _position(self, found: Count | None, epoch: Count | None, announced: float | None) -> Position:
        total = (found.total or self._total_steps) if found else announced
        return Position(
            step=whole(found.value) if found else None,
            total_steps=whole(total) if not found or found.value <= (total or 0) else None,
            epoch=whole(epoch.value) if epoch else None,
            total_epochs=whole(epoch.total) if epoch else None,
        )

    def _whole_training(self, text: str, facts: Facts, bar: Bar | None, epoch: Count | None) -> Count | None:
        """The step of a line that does not call it global."""
        if bar and not (bar.names_training or self._heading or bar.total == self._total_steps):
            return None
        count, in_epoch = _step(text, facts, bar, epoch)
        if count is None:
            return None
        model_fit = "/step" in text and MODEL_FIT.search(text) is not None
        current = epoch or self._heading
        if current and not in_epoch:
            self._note(count, current)
        if count.total and current and (in_epoch or (current.total and self._within_epochs is not False)):
            return self._over_epochs(count.value, count.total, current)
        if in_epoch or model_fit:
            return None
        return count if count.total or not self._within_epochs else None

    def _over_calls(self, text: str) -> Count | None:
        """The batches of all calls of `train_from_dataset`: a smaller number than before begins another call."""
        printed = FROM_DATASET.search(text) if "batch: [" in text else None
        if printed and text not in self._batches:
            if (batch := int(printed[1])) <= self._batch:
                self._earlier_calls += self._batch
            self._batch = batch
            self._batches[text] = self._earlier_calls + batch
            if len(self._batches) > REREAD:
                del self._batches[next(iter(self._batches))]
        return Count(self._batches[text]) if printed else None

    def _over_epochs(self, step: float, steps: float, epoch: Count) -> Count:
        """Epochs are counted from 1 where their number is known, unless an epoch 0 was seen, else from 0."""
        first = 1 if epoch.total and not self._epochs_from_zero else 0
        done = max(0.0, epoch.value - first)
        return Count(done * steps + step, epoch.total * steps if epoch.total else None)

    def _note(self, count: Count, epoch: Count) -> None:
        """Learn whether steps count within each epoch, from lines that have both."""
        rose = self._last is not None and epoch.value > self._last[0]
        higher = self._last is not None and count.value > self._last[1]
        if count.total and epoch.total:
            share, span = count.value / count.total, 1 / epoch.total
            if not (epoch.value - 1) * span <= share <= (epoch.value + 1) * span:
                self._within_epochs = True
            elif self._within_epochs is None and rose and higher:
                self._within_epochs = False
        elif not count.total and rose and not higher:
            self._within_epochs = True
        self._last = (epoch.value, count.value)


def _global_step(facts: Facts) -> Count | None:
    if "global_step" in facts.counts:
        return facts.counts["global_step"]
    value = _value(facts, GLOBAL_STEP)
    return None if value is None else Count(value, _value(facts, TOTAL_STEPS))


def _step(text: str, facts: Facts, bar: Bar | None, epoch: Count | None) -> tuple[Count | None, bool]:
    """A step or iteration, and whether it surely counts within the epoch of the same line."""
    for name in ("step", "iter", "train_step"):
        if name in facts.counts:
            return facts.counts[name], name == "train_step" and epoch is not None
    if bar:
        return Count(bar.step, bar.total), epoch is not None
    if "batch" in facts.counts:
        return facts.counts["batch"], True
    for fraction in facts.fractions:
        if fraction != epoch and (facts.values or epoch or (text.startswith("[") and text.endswith("]"))):
            return fraction, epoch is not None
    value = _value(facts, STEP)
    return (None, False) if value is None else (Count(value), False)


def _epoch(facts: Facts) -> Count | None:
    for name in ("epoch", "pass"):
        if name in facts.counts:
            found = facts.counts[name]
            return Count(found.value, found.total or _value(facts, TOTAL_EPOCHS))
    value = _value(facts, EPOCH)
    return None if value is None else Count(value, _value(facts, TOTAL_EPOCHS))


def _is_heading(facts: Facts, bar: Bar | None, epoch: Count | None) -> bool:
    """Whether the line holds the number of an epoch and nothing else."""
    return bool(epoch and epoch.total) and len(facts.counts) == 1 and not bar and not facts.values.keys() - {"epoch"}


def _announced(text: str) -> float | None:
    found = ANNOUNCED_TOTAL.search(text) if "step" in text or "iter" in text else None
    return float(found[1].replace(",", "")) if found else None


def _value(facts: Facts, names: tuple[str, ...]) -> float | None:
    return next((facts.values[name] for name in names if name in facts.values), None)
