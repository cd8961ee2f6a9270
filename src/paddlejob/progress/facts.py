"""Numbers with their names in a line, whatever format it has: `key=value`, `key: value`, `step 10/500`, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from paddlejob.progress.numbers import DIGITS, NUMBER, number

PAIR = re.compile(
    rf"""(?<![\w./-])([a-z_][\w./-]{{0,63}}+)["']?(?:\([\w.]{{0,40}}\)|\[[\d,]{{0,20}}\])?\s{{0,40}}+[:=]\s{{0,8}}+["'\[]{{0,2}}\s{{0,4}}+
    ({NUMBER})""",
    re.VERBOSE,
)
LOSS = re.compile(rf"(?<![\w./-])((?:batch_|train_|avg_)?loss|loss_avg|cost|(?:train_)?lr)\s{{1,4}}+({NUMBER})")
COUNT = re.compile(
    rf"""(?<![\w./-])(global[ _]step|train[ _]step|step|iter(?:ation)?|epoch|pass|batch)["']?\s{{0,8}}+[:=]?\s{{0,8}}+
    \[?\s{{0,8}}+({DIGITS})(?:\.(\d++))?(?:\s{{0,4}}+(?:/|of\b)\s{{0,4}}+({DIGITS}))?(?!\w|:\d|%)""",
    re.VERBOSE,
)
FRACTION = re.compile(rf"\[\s{{0,8}}+({DIGITS})\s{{0,4}}+/\s{{0,4}}+({DIGITS})\s{{0,4}}+\]")
PLAIN_FRACTION = re.compile(
    rf"epoch\s{{0,4}}+\[?{DIGITS}(?:/{DIGITS})?\]?\s?:\s{{1,4}}+({DIGITS})/({DIGITS})(?![\w./])"
)
"""`epoch 1: 20/500`, without brackets."""
OTHER = re.compile(
    r"(?:(?<![a-z])(?:max|maximum|total|num|warmup|warm-up|log|logging|save|every|per|best|val|valid|validation"
    r"|eval|evaluation|test)|lr|decay|scheduler)[ _-]$"
)
"""In front of a name: a setting, a scheduler or an evaluation, not the step, epoch or loss of training."""
OF_TRAINING = ("step", "iter", "iteration", "epoch")
"""Names whose values are counts."""
SPEED = re.compile(
    rf"""(?<![\w.])({NUMBER})\s?
    (?:samples?|images?|imgs?|examples?|sequences?|instances?|ins|records?|reviews?)/s(?:ec)?+
    (?!\w|\s{{0,4}}+[:=])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Count:
    value: float
    total: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    counts: Mapping[str, Count] = field(default_factory=dict)
    """Positions by name: global_step, train_step, step, iter, epoch, pass, batch."""
    fractions: tuple[Count, ...] = ()
    """[10/500], also where it belongs to one of the counts, and `epoch 1: 10/500`."""
    values: Mapping[str, float] = field(default_factory=dict)
    """By lower-case name; the first of a name counts."""
    speed: float | None = None
    """Samples per second, as in `12.3 images/s`."""


def facts_of(text: str) -> Facts:
    fields = _json_fields(text) if text.startswith("{") and text.endswith("}") else None
    return _named_numbers(text.lower()) if fields is None else Facts(values=fields)


def _named_numbers(text: str) -> Facts:
    values: dict[str, float] = {}
    for found in chain(PAIR.finditer(text), LOSS.finditer(text)):
        key = found[1]
        if key not in OF_TRAINING and ("loss" not in key or not _is_other(text, found)):
            values.setdefault(key, _float(found[2]))
    counts: dict[str, Count] = {}
    for found in COUNT.finditer(text):
        if not _is_other(text, found):
            counts.setdefault(_normalized(found[1]), _count(found[2], found[3], found[4]))
    brackets = FRACTION.findall(text) or PLAIN_FRACTION.findall(text) if "/" in text else []
    speed = SPEED.search(text) if "/s" in text else None
    fractions = tuple(Count(_float(value), _float(total)) for value, total in brackets)
    return Facts(counts, fractions, values, _float(speed[1]) if speed else None)


def _is_other(text: str, found: re.Match[str]) -> bool:
    return OTHER.search(text[max(0, found.start() - 12) : found.start()]) is not None


def _normalized(name: str) -> str:
    return "iter" if name == "iteration" else name.replace(" ", "_")


def _count(value: str, decimals: str, total: str) -> Count:
    whole_and_part = _float(f"{value}.{decimals}") if decimals else _float(value)
    return Count(whole_and_part, _float(total) if total else None)


def _float(text: str) -> float:
    return float(text.replace(",", ""))


def _json_fields(text: str) -> dict[str, float] | None:
    """The numbers of a JSON object, also one level down; None if it is not JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    fields: dict[str, float] = {}
    for key, value in _leaves(document):
        if (found := _numeric(value)) is not None:
            fields.setdefault(key.lower(), found)
    return fields


def _leaves(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if not isinstance(value, dict):
            yield key, value
    for value in document.values():
        if isinstance(value, dict):
            yield from value.items()


def _numeric(value: Any) -> float | None:
    if isinstance(value, str):
        return number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
