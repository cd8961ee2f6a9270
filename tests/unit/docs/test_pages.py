"""Commands of the documentation, run as a reader would: page by page, in their order, in one directory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import copy_files
from tools.docs.markdown import Block, parse
from tools.docs.pages import DOCS, ROOT, english_pages

FILES = Path(__file__).parent / "files"
"""What a reader already has: files that pages mention but do not show."""


def blocks(page: str, kinds: tuple[str, ...]) -> list[Block]:
    return [block for block in parse((DOCS / page).read_text()).blocks if block.marker and block.marker.kind in kinds]


QUICK = [page for page in english_pages() if blocks(page, ("run",))]
SLOW = [page for page in english_pages() if blocks(page, ("run slowly",))]


@pytest.mark.parametrize("page", QUICK)
def test_the_commands_of_a_page_work(page: str, tmp_path: Path):
    run(blocks(page, ("run",)), page, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("page", SLOW)
def test_the_commands_of_a_page_that_train_work(page: str, tmp_path: Path):
    run(blocks(page, ("run", "run slowly")), page, tmp_path)


def test_a_command_that_fails_is_noticed(tmp_path: Path):
    with pytest.raises(AssertionError, match="no-such-file"):
        run([Block(1, "bash", "pdj validate no-such-file.yaml")], "index.md", tmp_path)


def test_another_output_is_noticed_and_dots_stand_for_any_lines():
    assert matches("a\n...\nd", "a\nb\nc\nd\n")
    assert not matches("a\n...\nd", "a\nb\nc\ne\n")


def run(story: list[Block], page: str, folder: Path) -> None:
    """Run the blocks one after the other in a checkout of the repository; the first that fails ends the story."""
    checkout, home = folder / "checkout", folder / "home"
    checkout.mkdir()
    home.mkdir()
    for path in ROOT.iterdir():
        (checkout / path.name).symlink_to(path)
    for file in [*FILES.iterdir(), ROOT / "deploy/examples/batch-job/paddle-cluster-job.yaml"]:
        shutil.copy(file, checkout)
    copy_files(DOCS / page, checkout)
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": programs, "NO_COLOR": "1"}
    for block in story:
        assert block.language in ("bash", "console"), f"docs/{page}:{block.line}: such a block cannot be run"
        for command, expected in typed(block):
            shell = ["bash", "-euo", "pipefail", "-c", f"exec 2>&1; {command}"]
            done = subprocess.run(shell, cwd=checkout, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, f"docs/{page}:{block.line}\n{command}\n{done.stdout}"
            if block.language == "console":
                assert matches(expected, done.stdout), f"docs/{page}:{block.line}\n{command}\nprints\n{done.stdout}"


def typed(block: Block) -> list[tuple[str, str]]:
    """The commands of a block with the output that it shows for each."""
    if block.language == "bash":
        return [(block.text, "")]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def matches(expected: str, printed: str) -> bool:
    """Whether the output is the one that is shown; a line of three dots stands for any lines."""
    lines = ["(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in expected.splitlines()]
    return re.fullmatch("".join(lines), printed.rstrip("\n") + "\n") is not None
