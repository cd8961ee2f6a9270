"""The texts of the page: every one that is used exists, in both languages, and none is left over."""

from __future__ import annotations

import re
from pathlib import Path

import paddlejob.web
from paddlejob.api.types import Phase
from paddlejob.web.actions import NAMES

STATIC = Path(paddlejob.web.__file__).with_name("static")
SCRIPTS = {path.name: path.read_text() for path in STATIC.glob("*.js")}
ENTRY = re.compile(r'^  (?:"([\w-]+)"|(\w+)): \[', re.MULTILINE)
ONE_LINE = re.compile(r'^  (?:"[\w-]+"|\w+): \["([^"]*)", "([^"]*)"\],$', re.MULTILINE)
BY_VALUE = {"about-suspend", "about-resume", "about-scale", "about-rerun", "about-delete"}
"""Texts whose names a script puts together."""


MARKUP = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function")


def known() -> set[str]:
    return {quoted or plain for quoted, plain in ENTRY.findall(SCRIPTS["i18n.js"])}


def test_every_text_that_a_script_uses_exists():
    for name, script in SCRIPTS.items():
        used = set(re.findall(r'\bt\("([\w-]+)"', script))
        assert used <= known(), name


def test_phases_states_and_actions_have_texts():
    states = {"Pending", "Waiting", "Running", "Succeeded", "Failed", "Stopped", "Interrupted", "Deleting", "Damaged"}
    assert {*map(str, Phase), *states, *NAMES} <= known()
    assert {f"about-{verb}" for verb in NAMES} == BY_VALUE <= known()


def test_the_chinese_texts_are_chinese():
    same = {"CPU", "GPU"}
    for english, chinese in ONE_LINE.findall(SCRIPTS["i18n.js"]):
        assert english in same or re.search(r"[一-鿿]", english + chinese), english


def test_no_text_is_left_over():
    quoted = {
        word for name, script in SCRIPTS.items() if name != "i18n.js" for word in re.findall(r'"([\w-]+)"', script)
    }
    python = {*map(str, Phase), *NAMES, *BY_VALUE, "Waiting", "Succeeded", "Stopped", "Created", "local", "cluster"}
    assert known() - quoted - python == set()


def test_no_script_turns_text_into_markup_or_code():
    for name, script in SCRIPTS.items():
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script), (
            name
        )
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", script), f"{name} names another host"


def test_no_script_builds_a_pattern_from_what_somebody_typed():
    for name, script in SCRIPTS.items():
        assert "new RegExp" not in script, name
