"""Who is which trainer."""

from __future__ import annotations

import pytest

from paddlejob.launch.discovery import DnsDiscovery, StaticDiscovery
from paddlejob.launch.group import Group, build_group, sort_addresses
from paddlejob.launch.output import LaunchError
from paddlejob.launch.settings import read_settings
from tests.unit.launch.documents import ENVIRON


def test_addresses_are_sorted_as_numbers_not_as_text():
    assert sort_addresses(["10.0.0.10", "10.0.0.9", "9.255.0.1"]) == ["9.255.0.1", "10.0.0.9", "10.0.0.10"]


def test_ipv6_addresses_are_sorted_as_numbers_too():
    assert sort_addresses(["fd00::10", "fd00::9", "fd00::a:1"]) == ["fd00::9", "fd00::10", "fd00::a:1"]


def test_the_index_in_the_list_is_the_trainer_id():
    assert build_group(["10.0.0.10", "10.0.0.9"], {"10.0.0.10"}).rank == 1


def test_a_pod_that_is_not_in_the_list_reports_its_addresses():
    with pytest.raises(
        LaunchError, match=r"\(10\.0\.0\.9\) do not contain this pod's address \(10\.0\.0\.7\).*set POD_IP"
    ):
        build_group(["10.0.0.9"], {"10.0.0.7"})


def test_an_ipv6_address_is_bracketed_before_a_port():
    assert Group(("fd00::9", "10.0.0.1"), 0).endpoints(7164) == ["[fd00::9]:7164", "10.0.0.1:7164"]


def test_all_pods_that_see_the_same_group_compute_the_same_digest():
    assert Group(("10.0.0.1", "10.0.0.2"), 0).digest == Group(("10.0.0.1", "10.0.0.2"), 1).digest
    assert Group(("10.0.0.1", "10.0.0.2"), 0).digest != Group(("10.0.0.1", "10.0.0.3"), 0).digest


def test_the_embedded_engine_lists_the_addresses():
    environ = {"PADDLEJOB_PEERS": "127.1.0.10,127.1.0.9", "PADDLEJOB_POD_IP": "127.1.0.9"}
    assert StaticDiscovery(environ, 2).discover(0) == Group(("127.1.0.9", "127.1.0.10"), 0)


def test_listed_peers_must_be_addresses():
    with pytest.raises(LaunchError, match="PADDLEJOB_PEERS: 'a' does not appear to be an IPv4 or IPv6 address; set"):
        StaticDiscovery({"PADDLEJOB_PEERS": "a,b", "POD_IP": "a"}, 2)


def test_the_workers_of_a_paddle_job_know_each_other_from_its_environment():
    environ = {"PADDLE_TRAINERS": "a.ns.svc,b.ns.svc", "PADDLE_TRAINER_ID": "1", "POD_IP": "b.ns.svc"}
    assert StaticDiscovery(environ, 2).discover(0) == Group(("a.ns.svc", "b.ns.svc"), 1)


def test_a_count_that_differs_from_the_pods_is_an_error():
    with pytest.raises(LaunchError, match="CONF_PADDLE_GRADIENT_NUM: 3 differs from the job's 2 pods; set it to 2"):
        StaticDiscovery({"PADDLEJOB_PEERS": "127.1.0.10,127.1.0.9", "POD_IP": "127.1.0.9"}, 3)


def test_pods_of_an_indexed_job_find_each_other_by_dns_and_keep_their_index():
    names = {f"train-{index}.train": f"10.0.0.{20 - index}" for index in range(3)}
    environ = {**ENVIRON, "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2"}
    found = DnsDiscovery(environ, read_settings(environ, []), resolve=names.__getitem__).discover(0)
    assert found == Group(("10.0.0.20", "10.0.0.19", "10.0.0.18"), 2)


def test_names_that_do_not_resolve_are_reported_with_what_they_need():
    environ = {**ENVIRON, "JOB_COMPLETION_INDEX": "0", "JOB_SERVICE": "peers"}
    known = {"paddle-cluster-job-0.peers": "10.0.0.1"}
    discovery = DnsDiscovery(environ, read_settings(environ, []), resolve=lambda name: known.get(name, ""))
    with pytest.raises(
        LaunchError, match=r"cannot resolve paddle-cluster-job-1\.peers, paddle-cluster-job-2\.peers; create"
    ):
        discovery.discover(0)


def test_an_index_beyond_the_number_of_trainers_is_an_error():
    environ = {**ENVIRON, "JOB_COMPLETION_INDEX": "3"}
    with pytest.raises(LaunchError, match="has index 3, but CONF_PADDLE_GRADIENT_NUM is 3"):
        DnsDiscovery(environ, read_settings(environ, []))
