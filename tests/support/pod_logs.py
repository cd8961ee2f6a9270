"""The logs of pods as a kubelet serves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

Line = tuple[datetime, str]


def log_text(lines: Sequence[str | Line], query: Mapping[str, str]) -> str:
    """The lines that a request asks for. One without a time was printed in the second of its number from NOON on."""
    stamped = [_stamped(second, line) for second, line in enumerate(lines)]
    since = query.get("sinceTime", "")[:19]  # API servers cut it to whole seconds.
    newest = stamped[max(0, len(stamped) - int(query.get("tailLines", len(stamped)))) :]
    shown = [(at, text) for at, text in newest if at >= since]
    text = "".join(f"{at} {text}\n" if query.get("timestamps") == "true" else f"{text}\n" for at, text in shown)
    return text[: int(query.get("limitBytes", len(text)))]


def _stamped(second: int, line: str | Line) -> tuple[str, str]:
    """Kubelets always write nine digits."""
    if isinstance(line, str):
        return f"2027-01-15T08:00:{second:02}.123456789Z", line
    return f"{line[0]:%Y-%m-%dT%H:%M:%S.%f}000Z", line[1]
