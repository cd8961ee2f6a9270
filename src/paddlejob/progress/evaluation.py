"""Evaluation in between: its steps and losses are not those of training."""

from __future__ import annotations

import re

from paddlejob.progress.bars import Bar
from paddlejob.progress.facts import Facts

OF_EVALUATION = re.compile(
    r"""\[(?:eval|evaluate|val|valid|validation|test)\]
    |(?<![\w/.-])(?:eval|evaluation|val|valid|validation|test)\s{1,4}(?:step|iter|epoch|batch|samples)
    |(?<![\w/.-])end\s{1,4}(?:epoch:\s{0,4}\d{1,9}\s{1,8})?(?:eval|val|valid|test)\b
    |(?<![\w/.-])(?:evaluat|validat|test|predict)ing\s{1,4}(?:(?:at|after|on|for)\s{1,4})?(?:step|iter|epoch|batch|samples)""",
    re.VERBOSE,
)
BEGIN = re.compile(r"eval begin|predict begin|running (?:evaluation|prediction)|start evaluating")
END = re.compile(r"eval samples|running training|\[train\]")


class Evaluation:
    """Whether the lines of a log, read in order, belong to evaluation."""

    def __init__(self) -> None:
        self._running = False
        self._training_bar = 0
        """The total of the bar that shows training; other bars show an evaluation."""

    def covers(self, text: str, facts: Facts, bar: Bar | None) -> bool:
        """Whether a line in lower case does."""
        mentioned = "val" in text or "test" in text or "predict" in text
        if mentioned and BEGIN.search(text):
            self._running = True
        elif self._running and (END.search(text) or self._resumes(facts, bar)):
            self._running = False
        if bar and not self._running:
            self._training_bar = bar.total
        return self._running or (mentioned and bool(OF_EVALUATION.search(text)))

    def _resumes(self, facts: Facts, bar: Bar | None) -> bool:
        same_bar = bar is not None and bar.total == self._training_bar
        return same_bar or "epoch" in facts.counts or "global_step" in facts.values.keys() | facts.counts.keys()
