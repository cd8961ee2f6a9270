"""The quick_start program's data and its pass directories; that it learns is shown in tests/launch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

QUICK_START = Path(__file__).resolve().parents[3] / "src" / "paddlejob" / "examples" / "quick_start"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, QUICK_START / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reviews, passes = load("reviews"), load("passes")


def test_reviews_are_the_same_each_time_and_both_labels_occur():
    lines = list(reviews.generate(200))
    assert lines == list(reviews.generate(200))
    labels = [reviews.parse(line).label for line in lines]
    assert 50 < sum(labels) < 150
    assert [reviews.parse(line).number for line in lines] == list(range(200))


def test_an_invalid_line_is_shown():
    with pytest.raises(ValueError, match="separated by tabs; found 'good movie"):
        reviews.parse("good movie\n")


def test_numbers_are_formatted_as_ranges():
    assert reviews.ranges([5, 1, 2, 3, 9]) == "1-3,5,9"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    made = tmp_path / "trainer_config.lr.py"
    made.write_text("VOCABULARY = 200\n")
    return made


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "output"


def saved(text: str) -> Callable[[Path], None]:
    return lambda directory: (directory / "w0").write_text(text) and None


def test_only_a_complete_pass_counts(output: Path, config: Path):
    for number in (0, 1):
        passes.write_pass(output, number, config, saved("1"))
    (output / "pass-00001" / "done").unlink()
    (output / "pass-tests").mkdir()
    assert passes.last_pass(output).name == "pass-00000"
    assert passes.number_of(passes.last_pass(output)) == 0


def test_a_pass_holds_the_parameters_the_config_and_its_name(output: Path, config: Path):
    """As in 2016: path.txt is how a trainer that starts from the directory finds the config in it."""
    whole = passes.write_pass(output, 3, config, saved("1"))
    assert {path.name for path in whole.iterdir()} == {"w0", "trainer_config.lr.py", "path.txt", "done"}
    assert (whole / "path.txt").read_text() == "trainer_config.lr.py\n"
    assert (whole / (whole / "path.txt").read_text().strip()).read_text() == config.read_text()
    assert (whole.stat().st_mode & 0o777) == (output.stat().st_mode & 0o777), "others may read it"


def test_a_pass_that_cannot_be_written_leaves_nothing(output: Path, config: Path):
    def full_volume(directory: Path) -> None:
        (directory / "w0").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        passes.write_pass(output, 0, config, full_volume)
    assert list(output.iterdir()) == []


def test_a_partial_pass_is_never_visible_and_the_next_group_removes_it(output: Path, config: Path):
    killed = f"""
import os, sys
sys.path.insert(0, {str(QUICK_START)!r})
import passes
from pathlib import Path
def dies(directory):
    (directory / "w0").write_text("half")
    os.kill(os.getpid(), 9)
passes.write_pass(Path({str(output)!r}), 0, Path({str(config)!r}), dies)
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -9
    (draft,) = output.iterdir()
    assert draft.name.startswith(".pass-00000-")
    assert passes.last_pass(output) is None
    passes.remove_drafts(output)
    assert list(output.iterdir()) == []


def test_a_trainer_of_the_previous_group_cannot_replace_a_complete_pass(output: Path, config: Path):
    """It may still write the same pass, from a node that was partitioned: the first complete one is kept."""

    def slow(directory: Path) -> None:
        (directory / "w0").write_text("before")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(passes.os, "getpid", lambda: 1)
            passes.write_pass(output, 0, config, saved("next"))

    assert passes.write_pass(output, 0, config, slow) == output / "pass-00000"
    assert (output / "pass-00000" / "w0").read_text() == "next"
    assert [path.name for path in output.iterdir()] == ["pass-00000"]


def test_an_incomplete_directory_of_that_name_is_replaced(output: Path, config: Path):
    (output / "pass-00000").mkdir(parents=True)
    (output / "pass-00000" / "w0").write_text("half")
    passes.write_pass(output, 0, config, saved("whole"))
    assert (output / "pass-00000" / "w0").read_text() == "whole"
