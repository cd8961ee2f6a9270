"""Checks of the shared volume after the plain Jobs of documents 003 and 004."""

from __future__ import annotations

import re
from pathlib import Path


def looks_as_in_the_documents(job: Path, program: str = "quick_start", trainers: int = 3) -> None:
    """Check the directory tree, and that the trainers together read every review once."""
    parts = [str(part) for part in range(trainers)]
    assert {path.name for path in job.iterdir()} >= {*parts, program, "output"}
    output = job / "output"
    passes = sorted(output.glob("pass-*"))
    assert [path.name for path in passes[:2]] == ["pass-00000", "pass-00001"]
    assert {"done", "path.txt", "trainer_config.lr.py"} <= {path.name for path in passes[0].iterdir()}
    nodes = [output / f"node_{part}" for part in parts]
    assert all((node / "server.log").exists() for node in nodes)
    read = sorted(range_ for node in nodes for range_ in _read((node / "train.log").read_text()))
    assert [first for first, _ in read] == [0, *(last + 1 for _, last in read[:-1])], f"read: {read}"
    assert len(read) == trainers


def _read(log: str) -> list[tuple[int, int]]:
    return [(int(first), int(last)) for first, last in re.findall(r"trainer \d+ read \d+ reviews: (\d+)-(\d+)", log)]
