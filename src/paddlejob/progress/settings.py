"""Settings that a program prints when it starts: `step` among them is an interval, not how far training is."""

from __future__ import annotations

import re

from paddlejob.progress.facts import Facts

NAMES = frozenset(
    {
        "batch_size",
        "dropout",
        "epochs",
        "eval_steps",
        "gamma",
        "gradient_accumulation_steps",
        "hidden_size",
        "log_steps",
        "logging_steps",
        "max_epochs",
        "momentum",
        "num_epochs",
        "num_layers",
        "num_train_epochs",
        "num_workers",
        "save_steps",
        "seed",
        "step_size",
        "warmup_steps",
        "weight_decay",
    }
)
PART = re.compile(r"\"[\w ./-]{1,64}\"\s{0,4}:[^,]{1,200},?")
"""A line of JSON that was printed with an indent."""


def are_settings(text: str, facts: Facts) -> bool:
    """Whether a line in lower case shows a dictionary or a namespace of settings."""
    return ("{" in text or "namespace(" in text) and bool(facts.values.keys() & NAMES)


def is_part_of_dump(text: str) -> bool:
    """Whether a line in lower case is one of many that together show a dictionary: `"step": 30,`."""
    return text.startswith('"') and PART.fullmatch(text) is not None
