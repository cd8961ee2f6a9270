"""Who is which trainer."""

from __future__ import annotations

import pytest

from paddlejob.launch.finding import ByName, HandedOver
from paddlejob.launch.group import Group, by_number, group_of
from paddlejob.launch.settings import read_settings
from paddlejob.launch.words import LaunchError
from tests.unit.launch.documents import ENVIRON


def test_addresses_are_sorted_as_numbers_not_as_text():
    assert by_number(["10.0.0.10", "10.0.0.9", "9.255.0.1"]) == ["9.255.0.1", "10.0.0.9", "10.0.0.10"]


def test_addresses_of_the_new_kind_are_sorted_as_numbers_too():
    assert by_number(["fd00::10", "fd00::9", "fd00::a:1"]) == ["fd00::9", "fd00::10", "fd00::a:1"]


def test_the_place_in_the_list_is_the_trainer_id():
    assert group_of(["10.0.0.10", "10.0.0.9"], {"10.0.0.10"}).rank == 1


def test_a_pod_that_is_not_in_the_list_says_which_addresses_it_has():
    with pytest.raises(LaunchError, match=r"\(10\.0\.0\.7\) stands once among the job's \(10\.0\.0\.9\).*set POD_IP"):
        group_of(["10.0.0.9"], {"10.0.0.7"})


def test_an_address_of_the_new_kind_is_bracketed_before_a_port():
    assert Group(("fd00::9", "10.0.0.1"), 0).endpoints(7164) == ["[fd00::9]:7164", "10.0.0.1:7164"]


def test_all_who_see_the_same_group_give_it_the_same_name():
    assert Group(("10.0.0.1", "10.0.0.2"), 0).digest == Group(("10.0.0.1", "10.0.0.2"), 1).digest
    assert Group(("10.0.0.1", "10.0.0.2"), 0).digest != Group(("10.0.0.1", "10.0.0.3"), 0).digest


def test_the_engine_hands_the_addresses_over():
    environ = {"PADDLEJOB_PEERS": "127.1.0.10,127.1.0.9", "PADDLEJOB_POD_IP": "127.1.0.9"}
    assert HandedOver(environ, 2).look(0) == Group(("127.1.0.9", "127.1.0.10"), 0)


def test_what_is_handed_over_must_be_addresses():
    with pytest.raises(LaunchError, match="PADDLEJOB_PEERS: 'a' does not appear to be an IPv4 or IPv6 address; it is"):
        HandedOver({"PADDLEJOB_PEERS": "a,b", "POD_IP": "a"}, 2)


def test_the_workers_of_a_paddle_job_know_each_other_from_its_environment():
    environ = {"PADDLE_TRAINERS": "a.ns.svc,b.ns.svc", "PADDLE_TRAINER_ID": "1", "POD_IP": "b.ns.svc"}
    assert HandedOver(environ, 2).look(0) == Group(("a.ns.svc", "b.ns.svc"), 1)


def test_a_count_that_is_not_that_of_the_pods_is_refused():
    with pytest.raises(LaunchError, match="CONF_PADDLE_GRADIENT_NUM: is 3, but the job has 2 pods"):
        HandedOver({"PADDLEJOB_PEERS": "127.1.0.10,127.1.0.9", "POD_IP": "127.1.0.9"}, 3)


def test_pods_of_an_indexed_job_find_each_other_by_name_and_keep_their_index():
    names = {f"train-{index}.train": f"10.0.0.{20 - index}" for index in range(3)}
    environ = {**ENVIRON, "JOB_COMPLETION_INDEX": "2", "HOSTNAME": "train-2"}
    found = ByName(environ, read_settings(environ, []), resolve=names.__getitem__).look(0)
    assert found == Group(("10.0.0.20", "10.0.0.19", "10.0.0.18"), 2)


def test_names_without_an_address_are_told_with_what_they_need():
    environ = {**ENVIRON, "JOB_COMPLETION_INDEX": "0", "JOB_SERVICE": "peers"}
    known = {"paddle-cluster-job-0.peers": "10.0.0.1"}
    finder = ByName(environ, read_settings(environ, []), resolve=lambda name: known.get(name, ""))
    with pytest.raises(
        LaunchError, match=r"no address for paddle-cluster-job-1\.peers, paddle-cluster-job-2\.peers; is"
    ):
        finder.look(0)


def test_an_index_beyond_the_number_of_trainers_is_refused():
    environ = {**ENVIRON, "JOB_COMPLETION_INDEX": "3"}
    with pytest.raises(LaunchError, match="has index 3, but CONF_PADDLE_GRADIENT_NUM is 3"):
        ByName(environ, read_settings(environ, []))
