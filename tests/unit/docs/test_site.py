"""`make docs` builds the site without a warning, and its pages load nothing from other hosts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.docs import site, stage
from tools.docs.pages import english_pages

LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]*\ssrc="([^"]+)"|<link[^>]*rel="(?:stylesheet|icon|preconnect)"[^>]*>'
)

REMOTE = re.compile(r"url\([\"']?(?:https?:)?//|@import [\"'](?:https?:)?//")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    assert site.build(folder) == 0
    return folder


def test_a_warning_fails_the_build_and_names_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def damaged(language: str, target: Path) -> None:
        stage.stage(language, target)
        (target / "why.md").write_text("# Why\n\n[gone](gone.md)\n")

    monkeypatch.setattr(site, "stage", damaged)
    assert site.build(tmp_path / "docs") == 1
    assert "why.md" in capsys.readouterr().out
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize("language", ["", "zh"])
def test_every_page_is_in_the_site_of_both_languages(built: Path, language: str):
    missing = [page for page in english_pages() if not (built / language / address(page)).is_file()]
    assert missing == []


def test_nothing_is_loaded_from_other_hosts(built: Path):
    loaded = {(page.name, found) for page in built.rglob("*.html") for found in foreign(page.read_text())}
    assert loaded == set()


def test_pictures_and_styles_name_no_other_host(built: Path):
    files = [path for kind in ("*.svg", "*.css") for path in built.rglob(kind)]
    assert {path.name for path in files} >= {"live.svg", "site.css"}
    assert [path.name for path in files if REMOTE.search(path.read_text())] == []


def test_the_chinese_site_can_be_searched_for_chinese_words(built: Path):
    index = json.loads((built / "zh/search.json").read_text())
    assert index["config"]["lang"] == ["zh"]
    assert any("断点续训" in item["title"] + item["text"] for item in index["items"])


def test_an_image_of_another_host_is_noticed():
    assert foreign('<img alt="a" src="https://example.com/a.png">') != []
    assert foreign('<link href="https://example.com/a.css" rel="stylesheet">') != []
    assert REMOTE.search('@font-face { src: url("https://example.com/a.woff2") }')


def foreign(page: str) -> list[str]:
    return [found[0] for found in LOADED.finditer(page) if "//" in found[0].replace("http://www.w3.org", "")]


def address(page: str) -> str:
    return (
        page.removesuffix("index.md") + "index.html"
        if page.endswith("index.md")
        else page.removesuffix(".md") + "/index.html"
    )
