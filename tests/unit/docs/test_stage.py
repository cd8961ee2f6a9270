"""What the site shows of a page: its generator's dialect, links that stay in the site, and whether it is behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs import stage
from tools.docs.dialect import join_chinese_lines, to_python_markdown
from tools.docs.pages import ROOT


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zh")
    stage.stage("zh", folder)
    return folder


def test_a_chinese_page_has_the_anchors_of_the_english_one(chinese: Path):
    assert "## 检查点 { #checkpoints }" in (chinese / "howto/own-program.md").read_text()


def test_links_lead_to_pages_of_the_same_language(chinese: Path):
    assert "(../howto/own-program.md#checkpoints)" in (chinese / "explanation/failures.md").read_text()


def test_files_of_the_repository_become_pages_of_the_site(chinese: Path):
    page = (chinese / "howto/volcano.md").read_text()
    assert "(../source/deploy/examples/wide_and_deep_volcano.yaml.md)" in page
    shown = (chinese / "source/deploy/examples/wide_and_deep_volcano.yaml.md").read_text()
    assert (ROOT / "deploy/examples/wide_and_deep_volcano.yaml").read_text().strip() in shown


def test_a_page_that_is_behind_says_so_and_links_to_the_english_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stage, "is_stale", lambda page: page == "howto/gpus.md")
    stage.stage("zh", tmp_path)
    assert "译文待更新" in (tmp_path / "howto/gpus.md").read_text()
    assert "(../../../howto/gpus/)" in (tmp_path / "howto/gpus.md").read_text()
    assert "译文待更新" not in (tmp_path / "howto/llm.md").read_text()


def test_lists_tables_and_blocks_after_text_get_the_blank_line_that_they_need():
    text = "Text:\n- one\n- two\n\nText:\n```bash\nls\n```\n| a |\n|---|\n"
    expected = "Text:\n\n- one\n- two\n\nText:\n\n```bash\nls\n```\n\n| a |\n|---|\n"
    assert to_python_markdown(text) == expected


def test_what_belongs_to_an_item_is_indented_by_four_spaces_and_code_outside_is_not():
    text = "- item:\n  more\n\n  ```bash\n  if true\n    ls\n  ```\n\n```yaml\na:\n  b: 1\n```\n"
    expected = "- item:\n    more\n\n    ```bash\n    if true\n      ls\n    ```\n\n```yaml\na:\n  b: 1\n```\n"
    assert to_python_markdown(text) == expected


def test_comments_for_developers_are_left_out():
    assert to_python_markdown("<!-- run -->\n```bash\nls\n```\n") == "```bash\nls\n```\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("一行文字\n另一行\n", "一行文字另一行\n"),
        ("结束。\n[链接](a.md)\n", "结束。[链接](a.md)\n"),
        ("使用\n`pdj run`\n", "使用\n`pdj run`\n"),
        ("列表：\n- 一\n- 二\n", "列表：\n- 一\n- 二\n"),
        ("```\n一行\n另一行\n```\n", "```\n一行\n另一行\n```\n"),
    ],
)
def test_line_ends_between_chinese_characters_are_no_spaces(text: str, expected: str):
    assert join_chinese_lines(text) == expected
