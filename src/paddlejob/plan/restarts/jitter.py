"""Jitter without randomness: it differs between jobs and attempts, but is always the same for one of them."""

from __future__ import annotations

import hashlib

from paddlejob.api.types import PaddleJob


def spread(job: PaddleJob, attempt: int, salt: str) -> int:
    """A number between 0 and 2**48."""
    digest = hashlib.sha256(f"{job.metadata.uid}/{attempt}/{salt}".encode()).digest()
    return int.from_bytes(digest[:6])


def jitter(job: PaddleJob, attempt: int, shortest: float, longest: float) -> float:
    """Seconds between the two, so that jobs that got in each other's way do not meet again."""
    return shortest + spread(job, attempt, "jitter") % 1000 / 1000 * (longest - shortest)
