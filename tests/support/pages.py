"""Programs, job files and output in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from tools.docs.markdown import parse
from tools.docs.pages import DOCS

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ|\b\d+(\.\d+)?(s|m|h|d)(\d+s|\d+m)?\b")


def copy_files(page: Path, folder: Path) -> None:
    """Save the files of a page under the names in their first lines, as a reader would."""
    for block in re.findall(r"^```\w+\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        named = re.match(r"# file: (\S+)\n", block)
        if named:
            path = folder / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block)


def shown_by(page: str, command: str) -> str:
    """The output that a page shows for a command: what follows it in its block, or the next block."""
    blocks = parse((DOCS / page).read_text()).blocks
    number = next(number for number, block in enumerate(blocks) if command in block.text.splitlines())
    after = blocks[number].text.partition(f"{command}\n")[2]
    return re.split(r"^\$ ", after, flags=re.MULTILINE)[0] if after else blocks[number + 1].text


def shape(output: str) -> list[list[str]]:
    """The words of each line, with T for every time and percentage: what two runs of a command have in common."""
    plain = re.sub(r"\b\d+%", "T", TIME.sub("T", output))
    return [words for line in plain.splitlines() if (words := line.split())]
