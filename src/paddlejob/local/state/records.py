"""The record of a pod in pods.json: what other commands know about a pod, also after it is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class PodRecord:
    name: str
    uid: str
    role: str
    index: int
    attempt: int
    state: str
    address: str = ""
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    pid: int = 0
    """The first process of the training container, or 0."""
    started: str = ""
    ended: str = ""
    log: str = ""
    removed: bool = False
    note: str = ""
    """The last failure of a container other than the training container."""

    def to_json(self) -> dict[str, Any]:
        fields = {**vars(self), "started": self.started or None, "ended": self.ended or None}
        fields["exitCode"] = fields.pop("exit_code")
        if not self.note:
            del fields["note"]
        return fields

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        fields = {**stored, "started": stored["started"] or "", "ended": stored["ended"] or ""}
        return cls(exit_code=fields.pop("exitCode"), **fields)
