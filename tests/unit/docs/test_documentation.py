"""The checks of `make verify` hold for the documentation, and notice what they are for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.docs import checks, pages, stage
from tools.docs.markdown import parse


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the documentation that a test may damage, in a repository whose other files are the real ones."""
    for path in pages.ROOT.iterdir():
        if path.name not in (".git", ".venv", "docs", "dist") and not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    docs = Path(shutil.copytree(pages.DOCS, tmp_path / "docs"))
    for module in (checks, pages, stage):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "DOCS", docs)
    for module in (checks, pages):
        monkeypatch.setattr(module, "NAVIGATION", docs / "navigation.yaml")
    return docs


def test_nothing_is_wrong_with_the_documentation():
    assert list(checks.problems_of_documentation()) == []


BOTH = ("why.md", "why.zh.md")


@pytest.mark.parametrize(
    ("pages", "text", "problem"),
    [
        (("howto/extra.zh.md",), "# 多余", "docs/howto/extra.zh.md: there is no English page of that name"),
        (("extra.md", "extra.zh.md"), "# Extra", "docs/navigation.yaml: extra.md is not listed"),
        (("why.md",), "[gone](howto/gone.md)", "howto/gone.md does not exist"),
        (("why.md",), "[a](howto/gpus.md#gone)", "howto/gpus.md has no heading with the anchor #gone"),
        (("why.zh.md",), "[GPU](howto/gpus.md)", "link to the Chinese page of howto/gpus.md"),
        (("why.zh.md",), "## 多余的一节", "docs/why.zh.md: headings differ"),
        (BOTH, "```bash\npdj list\n```", "say how this block is tested"),
        (BOTH, "```\npdj list\n```", "mark this block as bash or console"),
    ],
)
def test_what_is_wrong_with_a_page_is_noticed(copy: Path, pages: tuple[str, ...], text: str, problem: str):
    for name in pages:
        append(copy / name, text)
    assert any(problem in one for one in found()), found()


def test_a_missing_twin_is_noticed(copy: Path):
    (copy / "howto/gpus.zh.md").unlink()
    assert "docs/howto/gpus.md: there is no Chinese page; write docs/howto/gpus.zh.md" in found()


def test_a_command_that_differs_between_the_languages_is_noticed_but_not_its_comment(copy: Path):
    page = copy / "howto/llm.zh.md"
    page.write_text(page.read_text().replace("pdj validate llm.yaml", "pdj validate llm.yaml     # 检查"))
    assert found() == []
    page.write_text(page.read_text().replace("pdj validate llm.yaml", "pdj validate other.yaml"))
    assert any("differs from docs/howto/llm.md" in problem for problem in found())


def test_a_command_that_differs_between_the_readmes_is_noticed(copy: Path):
    readme = copy.parent / "README.zh-CN.md"
    text = readme.read_text()
    readme.unlink()
    readme.write_text(text.replace("pdj validate job.yaml", "pdj validate other.yaml"))
    assert any("README.zh-CN.md" in problem and "differs from README.md" in problem for problem in found())


HERE = "tests/unit/docs/test_documentation.py"
METRICS = "tests/local/test_metrics.py::test_the_series_covers_all_attempts"


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ("tests/gone.py::test_a", "tests/gone.py does not exist"),
        (HERE, f"{HERE} has no test ''; name the test that runs this block, as PATH::TEST"),
        (f"{HERE}::test_gone", f"{HERE} has no test 'test_gone'"),
        (METRICS, "no named test uses --history"),
        (METRICS, "no named test uses list"),
    ],
)
def test_a_test_that_does_not_exist_or_does_not_run_the_command_is_noticed(copy: Path, tests: str, problem: str):
    for name in BOTH:
        append(copy / name, f"<!-- tested by: {tests} -->\n```bash\npdj list --history\n```")
    assert any(problem in one for one in found()), found()


def test_a_changed_english_page_makes_its_twin_stale_but_a_comment_does_not(copy: Path):
    assert not stage.is_stale("why.md")
    append(copy / "why.md", "<!-- a comment -->")
    assert not stage.is_stale("why.md")
    append(copy / "why.md", "One more sentence.")
    assert stage.is_stale("why.md")


def test_a_block_in_a_list_has_its_marker_and_no_indentation():
    page = "- an item:\n\n  <!-- not run: it deletes data -->\n  ```bash\n  rm -r data\n  ```\n"
    (block,) = parse(page).blocks
    assert (block.text, block.marker and block.marker.detail) == ("rm -r data", "it deletes data")


def test_headings_within_blocks_are_no_headings_and_anchors_are_those_of_github():
    page = "# A\n\n```bash\n# comment\n```\n\n## Build the operator's image\n\n## A\n"
    assert [heading.anchor for heading in parse(page).headings] == ["a", "build-the-operators-image", "a-1"]


def found() -> list[str]:
    return list(checks.problems_of_documentation())


def append(page: Path, text: str) -> None:
    page.write_text(f"{page.read_text() if page.exists() else ''}\n{text}\n")
