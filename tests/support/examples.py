"""How many examples a law is tried with."""

from __future__ import annotations

from hypothesis import settings

SHARE = 3
FEWEST = 15
quick = False
"""Whether slow tests are left out; conftest.py sets it before the laws are imported."""


def examples(count: int) -> settings:
    """All of them in a full run, which draws new ones each time; a third in a quick one, always the same."""
    return settings(max_examples=max(count // SHARE, FEWEST) if quick else count, deadline=None)
