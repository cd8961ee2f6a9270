"""Which pods in the API server's response form the group, and the error when some are missing."""

from __future__ import annotations

import pytest

from paddlejob.launch.api_discovery import AlreadySucceeded, ApiDiscovery
from paddlejob.launch.group import Group
from paddlejob.launch.output import LaunchError
from paddlejob.launch.settings import read_settings
from tests.unit.launch.documents import ENVIRON
from tests.unit.launch.fake_api_server import (
    READY,
    Plain,
    Script,
    api_discovery,
    discover,
    listing,
    pod,
    waiting,
)


def test_pods_that_are_terminating_failed_or_of_an_earlier_job_are_not_in_the_group(server: Plain, script: Script):
    script.answers = [
        listing(
            pod("a", "10.0.0.9"),
            pod("b", "10.0.0.10"),
            pod("c", "10.0.0.8"),
            pod("d", "10.0.0.7", deletionTimestamp="2024-01-01T00:00:00Z"),
            pod("e", "10.0.0.6", phase="Failed"),
            pod("f", "10.0.0.5", owner="job-0"),
        )
    ]
    assert discover(api_discovery(server)).addresses == ("10.0.0.8", "10.0.0.9", "10.0.0.10")


def test_a_pod_that_starts_after_the_others_have_succeeded_has_nothing_to_do(server: Plain, script: Script):
    script.answers = [listing(pod("a", "10.0.0.9"), pod("b", "10.0.0.10", phase="Succeeded"))]
    with pytest.raises(AlreadySucceeded):
        discover(api_discovery(server))


def test_waiting_ends_with_an_error_that_names_the_missing_pods_and_why(server: Plain, script: Script):
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available",
    }
    pulling = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    failed = {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    script.always(
        pod("a", "10.0.0.9"),
        waiting("b", conditions=[unschedulable]),
        waiting("c", containerStatuses=[pulling]),
        waiting("d", phase="Failed", containerStatuses=[failed]),
        waiting("e", phase="Failed", reason="Evicted", message="The node was low on resource: memory."),
        pod("f", "10.0.0.7", deletionTimestamp="2024-01-01T00:00:00Z"),
    )
    with pytest.raises(LaunchError) as error:
        discover(api_discovery(server), seconds=1)
    assert str(error.value) == (
        "1 of 3 pods of the job are running after 600 s; "
        "not running: b (Pending: Unschedulable: 0/2 nodes are available), "
        "c (Pending: ImagePullBackOff: no such image), d (Failed: exit code 137), e (Failed: Evicted: The node was "
        "low on resource: memory.), f (Terminating). Raise JOB_WAIT_SECONDS to wait longer"
    )


@pytest.mark.parametrize("there", [2, 4])
def test_a_job_of_more_or_fewer_pods_than_trainers_is_reported_after_the_time_limit(
    there: int, server: Plain, script: Script
):
    script.always(*(pod(f"p{number}", f"10.0.0.{number}") for number in range(9, 9 + there)))
    with pytest.raises(LaunchError, match=f"The Job has {there} pods; set CONF_PADDLE_GRADIENT_NUM to its parallelism"):
        discover(api_discovery(server), seconds=1)


def test_a_name_that_no_pod_has_as_its_label_is_reported_at_once(server: Plain, script: Script):
    script.answers = [listing()]
    with pytest.raises(LaunchError, match=r"label job-name=paddle-cluster-job, not even this one; set JOB_NAME to"):
        discover(api_discovery(server), seconds=600)


@pytest.mark.parametrize(
    ("last", "group"),
    [
        (["fd00::8", "10.0.0.8"], ("10.0.0.8", "10.0.0.9", "10.0.0.10")),
        (["fd00::8"], ("fd00::8", "fd00::9", "fd00::10")),
    ],
)
def test_ipv4_is_used_where_every_pod_has_such_an_address(
    last: list[str], group: tuple[str, ...], server: Plain, script: Script
):
    both = {"a": ["fd00::9", "10.0.0.9"], "b": ["fd00::10", "10.0.0.10"], "c": last}
    pods = [waiting(name, phase="Running", podIPs=[{"ip": ip} for ip in ips]) for name, ips in both.items()]
    script.answers = [listing(*pods)]
    environ = {**ENVIRON, "POD_IP": "fd00::9", "HOSTNAME": "node-1"}
    found = discover(ApiDiscovery(server, environ, read_settings(environ, [])))
    assert found == Group(group, 1)


def test_a_pod_recognises_itself_by_name_where_its_address_differs(server: Plain, script: Script):
    """In a dual-stack cluster, the route to the API server may use the other IP family."""
    script.answers = [READY]
    environ = {**ENVIRON, "HOSTNAME": "b"}
    found = discover(ApiDiscovery(server, environ, read_settings(environ, [])))
    assert found.own == "10.0.0.10"
