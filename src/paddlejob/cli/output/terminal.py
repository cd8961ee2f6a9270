"""What pdj prints, without the control sequences of others: they move the cursor, rename windows or fake output."""

from __future__ import annotations

from typing import Any, TextIO, cast

from paddlejob.text import printable


class CleanOutput:
    """A text stream for status, events and logs that somebody else wrote."""

    def __init__(self, stream: TextIO) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        self.unfiltered.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click writes there where it takes the encoding for wrong, as ASCII.
            raise AttributeError(name)
        return getattr(self.unfiltered, name)


def unfiltered(stream: TextIO) -> TextIO:
    """For the sequences of a live view, whose text is cleaned before it is drawn."""
    return cast(TextIO, getattr(stream, "unfiltered", stream))
