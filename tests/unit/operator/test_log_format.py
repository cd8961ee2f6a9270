"""The operator's log, for people and for programs."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from paddlejob.engine.log_context import work_on
from paddlejob.errors import BadInput
from paddlejob.objects import transform
from paddlejob.operator.log_format import set_up_logs

pytestmark = pytest.mark.usefixtures("handlers_of_before")


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


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


async def test_a_line_names_the_job_that_the_task_works_on(capsys: pytest.CaptureFixture[str]):
    set_up_logs("json")
    log = logging.getLogger("paddlejob.kube.transport")

    async def turn(key: tuple[str, str]) -> None:
        work_on(key)
        log.warning("first")
        work_on(key, 3)
        await asyncio.gather(*(asyncio.to_thread(log.warning, "second") for _ in range(2)))

    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b"):
            tasks.create_task(turn(("ml", name)))
    log.warning("third")
    *of_jobs, third = lines(capsys)
    found = [(one["message"], one["namespace"], one["job"], one.get("attempt")) for one in of_jobs]
    expected = [("first", None)] + [("second", 3)] * 2
    assert sorted(found, key=str) == sorted(
        ((message, "ml", name, attempt) for name in ("a", "b") for message, attempt in expected), key=str
    )
    assert "job" not in third, "a task that works on no job"


def test_a_line_about_a_stored_job_that_cannot_be_read_names_it(capsys: pytest.CaptureFixture[str]):
    set_up_logs("json")
    transform.job({"metadata": {"namespace": "ml", "name": "odd", "uid": "1"}, "status": {"phase": "Odd"}})
    (line,) = lines(capsys)
    assert (line["namespace"], line["job"]) == ("ml", "odd")
    assert "phase" in str(line["message"])


def test_plain_text_for_people(capsys: pytest.CaptureFixture[str]):
    set_up_logs("text")
    logging.getLogger("paddlejob.operator").warning("the lease is lost")
    assert capsys.readouterr().err.endswith("WARNING the lease is lost\n")


def test_another_format_is_an_error_with_the_choices():
    with pytest.raises(BadInput, match="--log-format: xml is not a format; use json or text"):
        set_up_logs("xml")
