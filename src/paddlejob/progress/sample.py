"""What one line of a log tells about progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    step: int | None = None
    total_steps: int | None = None
    epoch: int | None = None
    total_epochs: int | None = None
    checkpoint: int | None = None
    """The step of a checkpoint that was written."""
    metrics: Mapping[str, float] = field(default_factory=dict)
