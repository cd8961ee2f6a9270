"""The operator's log, for people and for programs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from paddlejob.errors import BadInput
from paddlejob.operator.logs import set_up_logs


@pytest.fixture(autouse=True)
def handlers_of_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_one_json_object_per_line_with_the_error_inside_it(capsys: pytest.CaptureFixture[str]):
    set_up_logs("json")
    log = logging.getLogger("paddlejob.operator")
    log.info("watching %s", "all namespaces")
    try:
        raise KeyError("uid")
    except KeyError:
        log.exception("unexpected")
    log.debug("not shown")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert first.pop("time").endswith("+00:00")
    assert first == {"level": "info", "logger": "paddlejob.operator", "message": "watching all namespaces"}
    assert second["level"] == "error"
    assert "KeyError: 'uid'" in second["error"]


def test_plain_text_for_people(capsys: pytest.CaptureFixture[str]):
    set_up_logs("text")
    logging.getLogger("paddlejob.operator").warning("the lease is lost")
    assert capsys.readouterr().err.endswith("WARNING the lease is lost\n")


def test_another_format_is_an_error_with_the_choices():
    with pytest.raises(BadInput, match="--log-format: xml is not a format; use json or text"):
        set_up_logs("xml")
