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


def test_a_missing_twin_is_noticed(copy: Path):
    (copy / "howto/gpus.zh.md").unlink()
    assert "docs/howto/gpus.md: there is no Chinese page; write docs/howto/gpus.zh.md" in found()


def test_a_chinese_page_without_an_english_one_is_noticed(copy: Path):
    (copy / "howto/extra.zh.md").write_text("# 多余\n")
    assert "docs/howto/extra.zh.md: there is no English page of that name" in found()


def test_a_page_that_is_not_in_the_navigation_is_noticed(copy: Path):
    for name in ("extra.md", "extra.zh.md"):
        (copy / name).write_text("# Extra\n")
    assert "docs/navigation.yaml: extra.md is not listed" in found()


def test_a_link_that_leads_nowhere_is_noticed(copy: Path):
    append(copy / "why.md", "[gone](howto/gone.md) [anchor](howto/gpus.md#gone)")
    assert any("howto/gone.md does not exist" in problem for problem in found())
    assert any("howto/gpus.md has no heading with the anchor #gone" in problem for problem in found())


def test_a_link_of_a_chinese_page_to_an_english_one_is_noticed(copy: Path):
    append(copy / "why.zh.md", "[GPU](howto/gpus.md)")
    assert any("link to the Chinese page of howto/gpus.md" in problem for problem in found())


def test_a_chinese_page_with_other_headings_is_noticed(copy: Path):
    append(copy / "why.zh.md", "## 多余的一节")
    assert any("docs/why.zh.md: headings differ" in problem for problem in found())


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


def test_a_block_that_does_not_say_how_it_is_tested_is_noticed(copy: Path):
    for name in ("why.md", "why.zh.md"):
        append(copy / name, "```bash\npdj list\n```")
    assert any("say how this block is tested" in problem for problem in found())


def test_commands_in_a_block_without_a_language_are_noticed(copy: Path):
    for name in ("why.md", "why.zh.md"):
        append(copy / name, "```\npdj list\n```")
    assert any("mark this block as bash or console" in problem for problem in found())


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
    for name in ("why.md", "why.zh.md"):
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
    page.write_text(f"{page.read_text()}\n{text}\n")
