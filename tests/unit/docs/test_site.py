"""`make docs` builds the site without a warning, and its pages load nothing from other hosts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.docs import site
from tools.docs.pages import english_pages

LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*rel="(?:stylesheet|icon|preconnect)"[^>]*>'
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    assert site.build(folder) == 0
    return folder


@pytest.mark.parametrize("language", ["", "zh"])
def test_every_page_is_in_the_site_of_both_languages(built: Path, language: str):
    missing = [page for page in english_pages() if not (built / language / address(page)).is_file()]
    assert missing == []


def test_nothing_is_loaded_from_other_hosts(built: Path):
    loaded = {(page.name, found) for page in built.rglob("*.html") for found in foreign(page.read_text())}
    assert loaded == set()


def test_the_chinese_site_can_be_searched_for_chinese_words(built: Path):
    index = json.loads((built / "zh/search.json").read_text())
    assert index["config"]["lang"] == ["zh"]
    assert any("断点续训" in item["title"] + item["text"] for item in index["items"])


def test_an_image_of_another_host_is_noticed():
    assert foreign('<img alt="a" src="https://example.com/a.png">') != []
    assert foreign('<link href="https://example.com/a.css" rel="stylesheet">') != []


def foreign(page: str) -> list[str]:
    return [found[0] for found in LOADED.finditer(page) if "//" in found[0].replace("http://www.w3.org", "")]


def address(page: str) -> str:
    return (
        page.removesuffix("index.md") + "index.html"
        if page.endswith("index.md")
        else page.removesuffix(".md") + "/index.html"
    )
