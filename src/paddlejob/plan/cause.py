"""Why a job is in its phase, or why an attempt ended: a value until it is written to the status or an event."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cause:
    reason: str
    """For programs: one of api/reasons.py, or what a kubelet gave."""
    fact: str
    remedy: str = ""
    """What to do about it, and what happens next."""
    output: str = ""
    """The last lines that a container wrote."""
    error: str = ""
    """The line that says why a program failed by itself; empty if a peer, a network or a device may be the cause."""
    permanent: bool = False
    """Whether another attempt would end in the same way."""

    @property
    def message(self) -> str:
        """One line for people, followed on lines of their own by the output."""
        headline = "; ".join(filter(None, (self.fact, self.remedy)))
        return f"{headline}\n{self.output}" if self.output else headline

    def adding(self, clause: str) -> Cause:
        return replace(self, remedy="; ".join(filter(None, (self.remedy, clause))))
