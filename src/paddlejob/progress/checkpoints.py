"""Lines about checkpoints: which was written, with its step, and which were only cleaned up."""

from __future__ import annotations

import re

SAVED = re.compile(r"\b(?:sav(?:e|ed|es|ing)|wrote|written|writing)\b")
FAILED = re.compile(r"\b(?:fail\w*|cannot|can't|could not|unable|error\w*|not saved|skip\w*)\b")
SUBJECT = re.compile(r"checkpoint|ckpt|model|state|param|weights")
CLEANED_UP = re.compile(r"\b(?:remov|delet|prun|purg|discard|clean|rotat|keep)(?:e|ed|es|s|ing)?\b|\bkept\b")
STEP = re.compile(r"(?:global[_ ]?step|step|iter|iteration|checkpoint|ckpt)[ _:=-]{0,3}(\d{1,9})(?!\d|\.\d)")


def checkpoint_in(text: str) -> int | None:
    """The step of a line in lower case; None also for a checkpoint that is named by its epoch."""
    if ("sav" not in text and "wr" not in text) or not SAVED.search(text) or not SUBJECT.search(text):
        return None
    if FAILED.search(text):
        return None
    found = STEP.search(text)
    return int(found[1]) if found else None


def cleans_up(text: str) -> bool:
    """Whether a line in lower case tells of an old checkpoint that is removed or kept: its step lies in the past."""
    about = "checkpoint" in text or "ckpt" in text
    return about and CLEANED_UP.search(text) is not None and not SAVED.search(text)
