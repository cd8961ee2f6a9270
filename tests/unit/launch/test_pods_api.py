"""The pods API as it is on the wire: lists, watches that end, rejections."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from paddlejob.launch.discovery import ApiOrDnsDiscovery
from paddlejob.launch.output import LaunchError
from paddlejob.launch.pods_api import JobPods
from paddlejob.launch.settings import read_settings
from tests.unit.launch.documents import ENVIRON
from tests.unit.launch.fake_api_server import (
    BREAKS_OFF,
    READY,
    Plain,
    Script,
    api_discovery,
    discover,
    events,
    listing,
    pod,
    rejection,
)


def test_pods_are_asked_for_by_the_job_name_label_with_the_pods_own_token(server: Plain, script: Script):
    script.answers = [READY]
    assert discover(api_discovery(server)).addresses == ("10.0.0.8", "10.0.0.9", "10.0.0.10")
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
    assert discover(api_discovery(server)).rank == 1
    assert script.asked[1]["watch"] == "1"
    assert script.asked[1]["resourceVersion"] == "7"


def test_a_watch_that_is_too_old_is_followed_by_a_new_list(
    server: Plain, script: Script, capsys: pytest.CaptureFixture[str]
):
    script.answers = [
        listing(pod("a", "10.0.0.9")),
        (200, [{"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}]),
        listing(pod("a", "10.0.0.9"), pod("b")),
        rejection(410, "too old resource version"),
        READY,
    ]
    assert len(discover(api_discovery(server)).addresses) == 3
    assert [query.get("watch", "") for query in script.asked] == ["", "1", "", "1", ""]
    assert "is not responding" not in capsys.readouterr().out


def test_an_api_server_whose_watches_end_at_once_is_not_flooded(server: Plain, script: Script):
    script.always(pod("a", "10.0.0.9"))
    with pytest.raises(LaunchError):
        discover(api_discovery(server), seconds=2)
    assert len(script.asked) <= 6, "a list and a watch each second"


def test_a_busy_api_server_is_retried(server: Plain, script: Script):
    script.answers = [rejection(503, "starting"), READY]
    assert len(discover(api_discovery(server)).addresses) == 3


def test_an_api_server_that_stays_unavailable_is_the_reported_cause(server: Plain, script: Script):
    script.answers = [rejection(503, "etcd is on holiday")]
    with pytest.raises(LaunchError, match="the API server is not responding: 503 etcd is on holiday"):
        discover(api_discovery(server), seconds=1)


def test_a_short_outage_of_the_api_server_is_retried(server: Plain, script: Script, capsys: pytest.CaptureFixture[str]):
    script.answers = [listing(pod("a", "10.0.0.9")), BREAKS_OFF, BREAKS_OFF, READY]
    assert len(discover(api_discovery(server)).addresses) == 3
    assert capsys.readouterr().out.count("is not responding") == 1


def test_a_service_account_that_is_not_readable_is_reported(server: Plain, tmp_path: Path):
    (tmp_path / "token").unlink()
    with pytest.raises(LaunchError, match=r"cannot read the files of the service account: .*token"):
        discover(api_discovery(server), seconds=0.1)


def test_without_permission_the_error_has_the_commands_that_grant_it(server: Plain, script: Script):
    script.answers = [rejection(403, 'pods is forbidden: User "system:serviceaccount:team:train" cannot list')]
    environ = {**ENVIRON, "POD_IP": "10.0.0.9"}
    with pytest.raises(LaunchError) as error:
        discover(ApiOrDnsDiscovery(server, environ, read_settings(environ, [])))
    assert "cannot list" in str(error.value)
    assert "create role paddle-job-pods --verb=list,watch --resource=pods" in str(error.value)
    assert "--role=paddle-job-pods --serviceaccount=team:train\n" in str(error.value)
    assert "completionMode: Indexed" in str(error.value)


def test_a_role_that_permits_a_list_but_no_watch_is_reported_in_the_same_way(server: Plain, script: Script):
    script.answers = [listing(pod("a", "10.0.0.9")), rejection(403, "cannot watch")]
    environ = {**ENVIRON, "POD_IP": "10.0.0.9"}
    with pytest.raises(LaunchError, match=r"cannot watch. Allow it with\n.*--verb=list,watch"):
        discover(ApiOrDnsDiscovery(server, environ, read_settings(environ, [])))


def test_without_permission_an_indexed_job_uses_dns(server: Plain, script: Script, monkeypatch: pytest.MonkeyPatch):
    script.answers = [rejection(403, "forbidden")]
    names = {f"paddle-cluster-job-{index}.peers": f"10.0.0.{9 - index}" for index in range(3)}
    monkeypatch.setattr("paddlejob.launch.discovery.look_up", names.__getitem__)
    environ = {**ENVIRON, "POD_IP": "10.0.0.9", "JOB_COMPLETION_INDEX": "0", "JOB_SERVICE": "peers"}
    found = discover(ApiOrDnsDiscovery(server, environ, read_settings(environ, [])))
    assert found.addresses == ("10.0.0.9", "10.0.0.8", "10.0.0.7")


def test_a_rejected_token_is_an_error(server: Plain, script: Script):
    script.answers = [rejection(401, "Unauthorized")]
    with pytest.raises(LaunchError, match="does not accept this pod's token: Unauthorized"):
        discover(api_discovery(server))


def test_an_unreachable_api_server_is_retried_until_the_deadline(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "token").write_text("x")
    pods = JobPods(Plain("127.0.0.1", 1, tmp_path / "token", tmp_path / "ca"), "default", "job")
    assert list(pods.snapshots(time.monotonic() + 0.1)) == []
    assert capsys.readouterr().out.count("is not responding") == 1
