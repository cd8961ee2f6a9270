"""Reads progress from the lines of a log, in the formats that training programs use."""

from __future__ import annotations

import math

from paddlejob.api.progress_pattern import BadPattern, Pattern, compile_pattern
from paddlejob.api.types import ProgressSpec
from paddlejob.progress.bars import bar_in
from paddlejob.progress.checkpoints import checkpoint_in, cleans_up
from paddlejob.progress.evaluation import Evaluation
from paddlejob.progress.facts import Facts, facts_of
from paddlejob.progress.numbers import number, whole
from paddlejob.progress.position import Position, Positions
from paddlejob.progress.sample import Sample
from paddlejob.progress.settings import are_settings, is_part_of_dump
from paddlejob.text import visible

WORDS = (
    "step", "epoch", "iter", "loss", "cost", "pass", "%|", "[", "checkpoint", "ckpt", "eval", "predict",
    "running training",
)  # fmt: skip
"""A line without any of these is not looked at further, unless the job names metrics."""
LOSS = (
    "loss", "train_loss", "train/loss", "avg_loss", "loss_avg", "total_loss", "batch_loss", "avgcost", "avg_cost",
    "cost",
)  # fmt: skip
LEARNING_RATE = ("learning_rate", "lr", "cur_lr", "train_lr", "train/lr", "train/learning_rate")
SPEED = ("samples_per_second", "interval_samples_per_second", "train_samples_per_second", "samples/s", "images/s")
OF_LOADING = "[dataload global_step"
"""PaddleFormers prints such a line for each step, before the line with its loss."""
PATTERN_LIMIT = 2000
"""Characters of a line that the job's own pattern is applied to; 14 ms for the slowest pattern that was found."""
POSITION_GROUPS = ("step", "total_steps", "epoch", "total_epochs", "checkpoint")


class Parser:
    """Reads the lines of one attempt, in order, as the job's `spec.progress` asks for.

    Lines may be read twice or be missing; a parser that starts in the middle of an epoch of `Model.fit` reports no
    step before the next epoch.
    """

    def __init__(self, spec: ProgressSpec | None = None) -> None:
        self._spec = spec or ProgressSpec()
        self._pattern = _compiled(self._spec.pattern)
        self._named = {name.lower(): name for name in self._spec.metrics}
        self._positions = Positions()
        self._evaluation = Evaluation()

    def parse(self, line: str) -> Sample | None:
        """What the line tells; None if it says nothing about progress."""
        text = visible(line)
        if self._spec.pattern is not None:
            return self._by_pattern(text[:PATTERN_LIMIT])
        lower = text.lower()
        if not any(word in lower for word in WORDS) and not any(name in lower for name in self._named):
            return None
        if is_part_of_dump(lower) or cleans_up(lower) or OF_LOADING in lower:
            return None
        return self._by_format(facts_of(text), lower)

    def _by_format(self, facts: Facts, text: str) -> Sample | None:
        bar = bar_in(text)
        if bar and bar.shows_something_else:
            return None
        named = {name: facts.values[key] for key, name in self._named.items() if key in facts.values}
        if self._evaluation.covers(text, facts, bar):
            return _sample(Position(), named, checkpoint_in(text))
        position = self._positions.of(text, facts, bar)
        common = _common_metrics(facts, text)
        trains = bool(common.keys() & {"loss", "samples_per_second"})
        # A lone `epoch: 24` or `learning_rate: 0.1` is a setting, which frameworks print when they start.
        lone = position.step is None and position.total_epochs is None
        if not trains and (lone or are_settings(text, facts)):
            position, common = Position(total_steps=position.total_steps), {}
        return _sample(position, {**common, **named}, checkpoint_in(text))

    def _by_pattern(self, text: str) -> Sample | None:
        found = self._pattern.search(text) if self._pattern else None
        if not found:
            return None
        groups = {name: value for name, text in found.items() if (value := number(text)) is not None}
        position = {name: whole(groups.pop(name)) for name in POSITION_GROUPS if name in groups}
        checkpoint = position.pop("checkpoint", None)
        return _sample(Position(**position), groups, checkpoint)


def _compiled(pattern: str | None) -> Pattern | None:
    """None also for a pattern that is not valid: validation rejects those, and they must not stop an engine."""
    try:
        return compile_pattern(pattern) if pattern is not None else None
    except BadPattern:
        return None


def _common_metrics(facts: Facts, text: str) -> dict[str, float]:
    """Loss, learning rate and speed under one name each, whatever the program calls them."""
    keys = SPEED if "tokens/s" in text else (*SPEED, "ips")
    printed = _first("samples_per_second", facts, keys)
    speed = printed if facts.speed is None else {"samples_per_second": facts.speed}
    return {**_first("loss", facts, LOSS), **_first("learning_rate", facts, LEARNING_RATE), **speed}


def _first(name: str, facts: Facts, keys: tuple[str, ...]) -> dict[str, float]:
    return next(({name: facts.values[key]} for key in keys if key in facts.values), {})


def _sample(position: Position, metrics: dict[str, float], checkpoint: int | None = None) -> Sample | None:
    if position == Position() and not metrics and checkpoint is None:
        return None
    return Sample(
        step=position.step,
        total_steps=position.total_steps,
        epoch=position.epoch,
        total_epochs=position.total_epochs,
        checkpoint=checkpoint,
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
        non_finite={name: str(value) for name, value in metrics.items() if not math.isfinite(value)},
    )
