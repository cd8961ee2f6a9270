"""What one line of a log tells about progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything that is None, or not in `metrics`, the line did not tell."""

    step: int | None = None
    """Counted over the whole training."""
    total_steps: int | None = None
    epoch: int | None = None
    total_epochs: int | None = None
    checkpoint: int | None = None
    """The step of a checkpoint that was written."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Finite numbers only: loss, learning_rate, samples_per_second, and the metrics that the job names."""
    non_finite: Mapping[str, str] = field(default_factory=dict)
    """Metrics that are not a finite number: nan, inf or -inf. JSON has no such numbers."""

    @property
    def has_position(self) -> bool:
        return self.step is not None or self.epoch is not None

    @property
    def tells_something(self) -> bool:
        """Whether it is more than a total."""
        return self.has_position or bool(self.metrics or self.non_finite) or self.checkpoint is not None
