"""Progress bars of tqdm: `Epoch 2: 37%|###   | 37/100 [00:10<00:17, 3.6it/s, loss=0.2]`."""

from __future__ import annotations

import re
from dataclasses import dataclass

BAR = re.compile(r"(?<!\d)\d{1,3}%\|[^|]{0,400}\|\s{0,8}+(\d++)/(\d++)\s{0,8}+\[([^\]]{0,300})")
TRAINING = re.compile(r"train|epoch|step|iter")
BYTES = re.compile(r"\d[kmgt]?i?b/s")


@dataclass(frozen=True, slots=True)
class Bar:
    step: int
    total: int
    before: str
    """The description in front of the bar."""
    after: str
    """Times, speed and metrics behind it."""

    @property
    def names_training(self) -> bool:
        """Whether it surely shows training: the data may be prepared with a bar without description too."""
        return bool(TRAINING.search(self.before)) or "loss" in self.after

    @property
    def shows_something_else(self) -> bool:
        """Downloads, tokenizing and evaluation have a description or a unit of their own."""
        return bool(BYTES.search(self.after)) or (bool(self.before.strip(" :")) and not self.names_training)


def bar_in(text: str) -> Bar | None:
    """The bar of a line in lower case."""
    found = BAR.search(text) if "%|" in text else None
    if not found or len(found[1]) > 9 or len(found[2]) > 9:
        return None
    return Bar(int(found[1]), int(found[2]), text[: found.start()], found[3])
