"""Requests to a server in this process, over the files of real jobs."""

from __future__ import annotations

import gzip
import json
import logging
import resource
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from paddlejob.errors import NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.state.store import JobStore
from paddlejob.targets.capacity import MachineInfo
from paddlejob.web import server
from paddlejob.web.app import WebApp
from paddlejob.web.http import COMPRESS_FROM, number, reply
from tests.support.builders import NOON, document
from tests.support.web_jobs import JOB, WebClient, refusal, steps, stored


async def get(client: WebClient, path: str, status: int = 200) -> Any:
    answer = await client.get(path)
    assert answer.status == status, await answer.text()
    return await answer.json()


async def test_a_job_is_served_with_its_row_detail_series_logs_and_plan(client: WebClient, store: JobStore):
    stored(store, logs={"1/worker-0": steps(20)}, phase="Completed", attempt=1)
    (row,) = (await get(client, "/api/jobs"))["changes"]["rows"]
    assert (row["name"], row["phase"], row["fraction"]) == ("mnist", "Completed", 1.0)
    detail = await get(client, JOB)
    assert detail["row"]["name"] == "mnist" and "PaddleJob" in detail["file"]
    assert (await get(client, f"{JOB}/series"))["metrics"]["loss"][0]["steps"] == list(range(1, 21))
    assert await get(client, f"{JOB}/logs") == [{"attempt": 1, "replica": "worker-0", "size": len(steps(20))}]
    assert [one["line"] for one in (await get(client, f"{JOB}/logs/search?q=step 2"))["found"]] == [2, 20]
    assert (await get(client, f"{JOB}/plan"))["objects"] == 3
    downloaded = await client.get(f"{JOB}/logs/download?replica=worker-0&attempt=1")
    assert await downloaded.text() == steps(20)
    assert downloaded.headers["Content-Disposition"] == 'attachment; filename="mnist-worker-0-1.log"'
    for missing in ("replica=worker-7", "attempt=9"):
        assert "has no such log" in (await get(client, f"{JOB}/logs/download?{missing}", 404))["error"]
    assert [one["name"] for one in await get(client, "/api/machine")] == ["local"]


async def test_what_does_not_exist_is_not_found_and_says_what_does(client: WebClient, store: JobStore):
    stored(store)
    assert "existing jobs: mnist" in (await get(client, "/api/jobs/local/default/other", 404))["error"]
    assert "is not a target" in (await get(client, "/api/jobs/moon/default/mnist", 400))["error"]
    assert (await get(client, f"{JOB}/logs/search?q=(", 400))["error"].startswith("( is not a regular expression")
    assert "error" in await get(client, "/nothing", 404)
    assert "not found in namespace" in (await get(client, "/api/jobs/local/default/A", 404))["error"]
    for name in ("..%2Fother", "a" * 5000, "%00", "%E8%AE%AD" * 100):
        for path in ("", "/logs", "/logs/download", "/series", "/plan"):
            answer = await get(client, f"/api/jobs/local/default/{name}{path}", 400)
            assert "is not a valid name" in answer["error"]


async def test_a_job_whose_message_says_not_found_is_found(client: WebClient, store: JobStore):
    stored(store, phase="Failed", message="command not found")
    assert (await get(client, JOB))["message"] == "command not found"


async def test_a_failure_inside_says_nothing_to_the_page_and_everything_to_the_log(
    client: WebClient, store: JobStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    stored(store)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("paddlejob.web.app.detail_of", broken)
    with caplog.at_level(logging.ERROR):
        assert "secret" not in json.dumps(await get(client, JOB, 500))
    assert "secret detail" in caplog.text


async def test_large_answers_are_compressed_for_those_who_accept_it(client: WebClient, store: JobStore):
    for index in range(20):
        stored(store, f"job-{index}")
    plain = await client.get("/api/jobs", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    packed = await client.get("/api/jobs", headers={"Accept-Encoding": "gzip"}, auto_decompress=False)
    assert gzip.decompress(await packed.read()) == await plain.read()


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"workers": "3"}', b'{"workers": -1}', b'{"workers": true}'])
async def test_a_body_that_is_not_understood_changes_nothing(client: WebClient, store: JobStore, body: bytes):
    stored(store)
    answer = await client.post(f"{JOB}/scale", data=body, headers={"Content-Type": "application/json"})
    assert answer.status == 400
    assert store.folder(("default", "mnist")).path.exists()


async def test_an_unknown_action_is_refused(client: WebClient, store: JobStore):
    stored(store)
    answer = await client.post(f"{JOB}/explode", json={})
    assert answer.status == 400 and "suspend" in (await answer.json())["error"]


async def test_an_action_says_what_its_verb_says(client: WebClient, store: JobStore):
    stored(store, phase="Completed", completionTime="2027-01-15T08:00:00Z")
    answer = await client.post(f"{JOB}/delete", json={})
    assert (answer.status, await answer.json()) == (200, {"message": "mnist deleted"})
    assert not store.folder(("default", "mnist")).path.exists()


async def test_an_action_that_fails_is_answered_with_the_message_of_its_command(client: WebClient, store: JobStore):
    stored(store, phase="Completed", completionTime="2027-01-15T08:00:00Z")
    status, message = await refusal(client, "POST", f"{JOB}/scale", json={"workers": 3})
    assert (status, message) == (400, "job mnist has ended (Completed) and cannot be changed; run it again")
    assert (await refusal(client, "POST", f"{JOB}/scale", json={}))[1].startswith("scale needs a number of workers")
    assert (await refusal(client, "POST", f"{JOB}/delete", json={"workers": 3}))[0] == 400
    assert (await refusal(client, "POST", f"{JOB}/scale", json={"workers": 100_001}))[0] == 400


async def test_a_body_that_is_too_large_is_refused(client: WebClient, store: JobStore):
    stored(store)
    large = {"x": "y" * (64 * 1024)}
    assert (await refusal(client, "POST", f"{JOB}/suspend", json=large))[0] == 413


@pytest.mark.parametrize(("text", "status"), [("-1", 400), ("x", 400), ("1" * 16, 400), ("²", 400)])
async def test_a_revision_is_a_number(client: WebClient, text: str, status: int):
    assert (await client.get("/api/stream", params={"since": text})).status == status


def test_a_number_of_a_request_defaults_to_0():
    assert number(make_mocked_request("GET", "/?since=12"), "since") == 12
    assert number(make_mocked_request("GET", f"/?since={'1' * 15}"), "since") == int("1" * 15)
    assert number(make_mocked_request("GET", "/"), "since") == 0


def test_small_answers_are_not_compressed():
    asked = make_mocked_request("GET", "/", headers={"Accept-Encoding": "gzip, br"})
    short, long = "x" * (COMPRESS_FROM - 3), "x" * (COMPRESS_FROM - 2)
    assert "Content-Encoding" not in reply(asked, short).headers
    assert reply(asked, long).headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in reply(make_mocked_request("GET", "/"), long).headers
    assert reply(asked, {1: "a"}).body == b'{"1":"a"}'


async def test_the_name_of_a_downloaded_file_is_safe(client: WebClient, store: JobStore):
    folder, lock = store.begin(document(), RunOptions(), NOON)
    lock.release()
    for replica in ("worker-0", "worker-1"):
        log = folder.log(1, f"mnist-{replica}")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"of {replica}\n")
    both = await client.get(f"{JOB}/logs/download")
    assert both.headers["Content-Disposition"] == 'attachment; filename="mnist.log"'
    assert both.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert await both.text() == "==> worker-0 <==\nof worker-0\n==> worker-1 <==\nof worker-1\n"
    assert (await client.get("/api/jobs/local/default/absent/logs/download")).status == 404


async def test_a_target_that_does_not_answer_hides_no_other(client: WebClient, web_app: WebApp, monkeypatch: Any):
    (source,) = web_app.feed.lists.values()

    async def fails(namespace: str) -> MachineInfo:
        raise NotPossible("no permission")

    monkeypatch.setattr(source.target, "capacity", fails)
    (found,) = await (await client.get("/api/machine")).json()
    assert (found["name"], found["title"], found["note"]) == ("local", "this machine", "no permission")


def test_the_limit_of_open_files_is_raised_as_far_as_allowed(monkeypatch: pytest.MonkeyPatch):
    changed: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: changed.append(limits))
    for limits in ((1024, 4096), (1024, resource.RLIM_INFINITY), (9000, 9000), (resource.RLIM_INFINITY,) * 2):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=limits: limits)
        server.raise_file_limit()
    assert changed == [(4096, 4096), (8192, resource.RLIM_INFINITY)]
