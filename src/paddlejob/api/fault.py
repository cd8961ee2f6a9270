"""One fault of a job: where it is, what is wrong and what to change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from paddlejob.errors import located, sentence

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a field of an object."""


class Severity(StrEnum):
    ERROR = "error"
    CLUSTER = "cluster"
    """An error on a cluster; `pdj run` runs the job nevertheless."""
    WARNING = "warning"
    """Kubernetes accepts it, but it is hardly what the author meant."""


@dataclass(frozen=True)
class Fault:
    path: Path
    message: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return sentence(self.where or "the document", self.message)

    @property
    def where(self) -> str:
        return format_path(self.path)

    def at(self, document: dict[str, Any], source: str) -> str:
        """With the file and, if the document was read from one, the line."""
        return located(source, str(self), line_of(document, self.path)) if source else str(self)


def line_of(document: dict[str, Any], path: Path) -> int:
    """0 if it is unknown."""
    # YAML is only imported where something was read: faults are also found in jobs of a cluster.
    from paddlejob.api.documents import Document

    return document.line(path) if isinstance(document, Document) else 0


def format_path(path: Sequence[str | int]) -> str:
    """As in spec.worker.template.spec.containers[0].image."""
    formatted = ""
    for step in path:
        if isinstance(step, int):
            formatted += f"[{step}]"
        elif not re.fullmatch(r"[\w-]+", step):
            formatted += f'["{step}"]'
        else:
            formatted = f"{formatted}.{step}" if formatted else step
    return formatted


def parse_fault(text: str) -> Fault:
    """A fault formatted as one line: a path of plain names, a colon and a message."""
    path, _, message = text.partition(": ")
    return Fault(tuple(path.split(".")), message)
