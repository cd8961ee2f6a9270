"""The pods API as it is on the wire: lists, watches that end, answers that say no."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from paddlejob.launch.finding import ByApiOrName
from paddlejob.launch.pods_api import JobPods
from paddlejob.launch.settings import read_settings
from paddlejob.launch.words import LaunchError
from tests.unit.launch.documents import ENVIRON
from tests.unit.launch.wire import (
    BREAKS_OFF,
    READY,
    Plain,
    Script,
    by_api,
    events,
    listing,
    look,
    pod,
    refusal,
)


def test_pods_are_asked_for_by_the_job_name_label_with_the_pods_own_token(server: Plain, script: Script):
    script.answers = [READY]
    assert look(by_api(server)).addresses == ("10.0.0.8", "10.0.0.9", "10.0.0.10")
    assert script.asked == [
        {
            "path": "/api/v1/namespaces/default/pods",
            "labelSelector": "job-name=paddle-cluster-job",
            "token": "Bearer secret",
        }
    ]


def test_a_watch_brings_the_last_pod(server: Plain, script: Script):
    script.answers = [
        listing(pod("a", "10.0.0.9"), pod("b")),
        events(("ADDED", pod("c", "10.0.0.8")), ("MODIFIED", pod("b", "10.0.0.10"))),
    ]
    assert look(by_api(server)).rank == 1
    assert script.asked[1]["watch"] == "1"
    assert script.asked[1]["resourceVersion"] == "7"


def test_a_watch_that_is_too_old_is_followed_by_a_new_list(
    server: Plain, script: Script, capsys: pytest.CaptureFixture[str]
):
    script.answers = [
        listing(pod("a", "10.0.0.9")),
        (200, [{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}]),
        listing(pod("a", "10.0.0.9"), pod("b")),
        refusal(410, "too old resource version"),
        READY,
    ]
    assert len(look(by_api(server)).addresses) == 3
    assert [query.get("watch", "") for query in script.asked] == ["", "1", "", "1", ""]
    assert "gives no answer" not in capsys.readouterr().out


def test_an_api_server_whose_watches_end_at_once_is_not_pestered(server: Plain, script: Script):
    script.always(pod("a", "10.0.0.9"))
    with pytest.raises(LaunchError):
        look(by_api(server), seconds=2)
    assert len(script.asked) <= 6, "a list and a watch each second"


def test_an_api_server_that_is_busy_is_asked_again(server: Plain, script: Script):
    script.answers = [refusal(503, "starting"), READY]
    assert len(look(by_api(server)).addresses) == 3


def test_an_api_server_that_stays_away_is_the_reason_that_is_given(server: Plain, script: Script):
    script.answers = [refusal(503, "etcd is on holiday")]
    with pytest.raises(LaunchError, match="the API server gives no answer: 503 etcd is on holiday"):
        look(by_api(server), seconds=1)


def test_an_api_server_that_is_away_for_a_moment_is_asked_again(
    server: Plain, script: Script, capsys: pytest.CaptureFixture[str]
):
    script.answers = [listing(pod("a", "10.0.0.9")), BREAKS_OFF, BREAKS_OFF, READY]
    assert len(look(by_api(server)).addresses) == 3
    assert capsys.readouterr().out.count("gives no answer") == 1


def test_a_service_account_that_is_not_readable_is_told(server: Plain, tmp_path: Path):
    (tmp_path / "token").unlink()
    with pytest.raises(LaunchError, match=r"the files of the service account cannot be read: .*token"):
        look(by_api(server), seconds=0.1)


def test_without_permission_the_error_brings_the_commands_that_give_it(server: Plain, script: Script):
    script.answers = [refusal(403, 'pods is forbidden: User "system:serviceaccount:team:train" cannot list')]
    environ = {**ENVIRON, "POD_IP": "10.0.0.9"}
    with pytest.raises(LaunchError) as told:
        look(ByApiOrName(server, environ, read_settings(environ, [])))
    assert "cannot list" in str(told.value)
    assert "create role paddle-job-pods --verb=list,watch --resource=pods" in str(told.value)
    assert "--role=paddle-job-pods --serviceaccount=team:train\n" in str(told.value)
    assert "completionMode: Indexed" in str(told.value)


def test_a_role_that_permits_a_list_but_no_watch_is_told_in_the_same_way(server: Plain, script: Script):
    script.answers = [listing(pod("a", "10.0.0.9")), refusal(403, "cannot watch")]
    environ = {**ENVIRON, "POD_IP": "10.0.0.9"}
    with pytest.raises(LaunchError, match=r"cannot watch. Permit it with\n.*--verb=list,watch"):
        look(ByApiOrName(server, environ, read_settings(environ, [])))


def test_without_permission_an_indexed_job_goes_by_name(server: Plain, script: Script, monkeypatch: pytest.MonkeyPatch):
    script.answers = [refusal(403, "forbidden")]
    names = {f"paddle-cluster-job-{index}.peers": f"10.0.0.{9 - index}" for index in range(3)}
    monkeypatch.setattr("paddlejob.launch.finding._address_of", names.__getitem__)
    environ = {**ENVIRON, "POD_IP": "10.0.0.9", "JOB_COMPLETION_INDEX": "0", "JOB_SERVICE": "peers"}
    found = look(ByApiOrName(server, environ, read_settings(environ, [])))
    assert found.addresses == ("10.0.0.9", "10.0.0.8", "10.0.0.7")


def test_a_token_that_is_not_accepted_ends_it(server: Plain, script: Script):
    script.answers = [refusal(401, "Unauthorized")]
    with pytest.raises(LaunchError, match="does not accept this pod's token: Unauthorized"):
        look(by_api(server))


def test_an_api_server_that_is_not_there_is_tried_until_the_deadline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "token").write_text("x")
    pods = JobPods(Plain("127.0.0.1", 1, tmp_path / "token", tmp_path / "ca"), "default", "job")
    assert list(pods.changes(time.monotonic() + 0.1)) == []
    assert capsys.readouterr().out.count("gives no answer") == 1
