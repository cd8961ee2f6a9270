"""The quick_start program's data and its pass directories; that it learns is shown in tests/launch."""

from __future__ import annotations

import importlib.util
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


def test_reviews_are_the_same_each_time_and_both_sides_are_there():
    lines = list(reviews.generate(200))
    assert lines == list(reviews.generate(200))
    labels = [reviews.parse(line).label for line in lines]
    assert 50 < sum(labels) < 150
    assert [reviews.parse(line).number for line in lines] == list(range(200))


def test_a_line_that_is_no_review_is_shown():
    with pytest.raises(ValueError, match="with tabs between; this is 'good movie"):
        reviews.parse("good movie\n")


def test_numbers_in_few_words():
    assert reviews.ranges([5, 1, 2, 3, 9]) == "1-3,5,9"


def test_only_a_whole_pass_counts(tmp_path: Path):
    config = tmp_path / "trainer_config.lr.py"
    config.touch()
    output = tmp_path / "output"
    for number in (0, 1):
        passes.write_pass(output, number, config, lambda directory: (directory / "w0").write_text("1"))
    (output / "pass-00001" / "done").unlink()
    (output / "pass-tests").mkdir()
    assert passes.last_pass(output).name == "pass-00000"
    assert passes.number_of(passes.last_pass(output)) == 0


def test_a_pass_that_dies_while_it_is_written_is_never_seen(tmp_path: Path):
    config = tmp_path / "trainer_config.lr.py"
    config.touch()

    def dies(directory: Path) -> None:
        (directory / "w0").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        passes.write_pass(tmp_path, 0, config, dies)
    assert list(tmp_path.glob("pass-*")) == []
    assert passes.last_pass(tmp_path) is None
    whole = passes.write_pass(tmp_path, 0, config, lambda directory: (directory / "w0").write_text("1"))
    assert {path.name for path in whole.iterdir()} == {"w0", "trainer_config.lr.py", "path.txt", "done"}
