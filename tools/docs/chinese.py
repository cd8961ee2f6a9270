"""Chinese texts of the generated references."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("chinese.yaml")


def english(text: str) -> str:
    return text


def chinese(text: str) -> str:
    """The translation of a text; the text itself where there is none."""
    return texts().get(text, text)


@cache
def texts() -> dict[str, str]:
    known: dict[str, str] = yaml.safe_load(FILE.read_text())
    return known
