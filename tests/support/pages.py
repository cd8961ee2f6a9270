"""Programs and job files in the documentation."""

from __future__ import annotations

import re
from pathlib import Path


def copy_files(page: Path, folder: Path) -> None:
    """Save the files of a page under the names in their first lines, as a reader would."""
    for block in re.findall(r"^```\w+\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        named = re.match(r"# file: (\S+)\n", block)
        if named:
            path = folder / named[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(block)
