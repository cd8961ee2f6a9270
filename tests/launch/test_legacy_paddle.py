"""With the `paddle` command of 2016 in the image, the documents' command lines are used. A fake records them."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.launch.pods import START_PADDLE, START_SH, stage, wait_until
from tests.launch.recorder import Cluster
from tests.unit.launch.documents import SERVER, logged


@pytest.fixture
def cluster(tmp_path: Path):
    with stage(tmp_path) as on:
        yield Cluster(on, tmp_path).start()


def test_server_and_trainer_get_the_documents_flags_in_the_documents_order(cluster: Cluster):
    cluster.wait_for_trainers()
    for rank in range(3):
        flags = logged(cluster.on.addresses, rank, str(cluster.on.job))
        assert cluster.recorded("train", rank) == ["train", *flags, "--num_gradient_servers=3"]
        assert cluster.recorded("pserver", rank) == ["pserver", *SERVER]
        assert cluster.recorded("data", rank) == ["part", str(rank)]


def test_servers_keep_running_until_every_trainer_has_succeeded(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.finish(0)
    cluster.finish(2)
    pods = cluster.pods
    waiting = "succeeded; its server keeps running"
    wait_until(lambda: all(waiting in pods[rank].text for rank in (0, 2)), "two succeeded", pods)
    cluster.finish(1)
    assert [pod.wait() for pod in pods] == [0, 0, 0]
    for rank in range(3):
        node = cluster.on.job / "output" / f"node_{rank}"
        assert (node / "train.log").read_text() == "this is train\n"
        assert (node / "server.log").read_text() == "this is pserver\n"
        assert "this is train\n" in pods[rank].text


@pytest.mark.parametrize(("end", "status"), [("exit 42", 42), ("kill -9 $$", 137)])
def test_a_pod_exits_with_the_code_of_its_failed_trainer_and_the_others_exit_too(
    end: str, status: int, cluster: Cluster
):
    cluster.wait_for_trainers()
    cluster.finish(1, end)
    assert [pod.wait() for pod in cluster.pods] == [75, status, 75]
    for rank in (0, 2):
        assert f"trainer 1 ({cluster.on.addresses[1]}) failed with exit code {status}" in cluster.pods[rank].text


def test_the_death_of_the_first_pod_is_noticed_by_the_others(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.pods[0].kill()
    assert [pod.wait() for pod in cluster.pods[1:]] == [75, 75]
    assert f"trainer 0 ({cluster.on.addresses[0]}) is lost" in cluster.pods[2].text


def test_a_signal_reaches_the_processes_and_the_other_pods(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.pods[2].process.send_signal(signal.SIGTERM)
    assert [pod.wait() for pod in cluster.pods] == [75, 75, 143]
    assert "received SIGTERM" in cluster.pods[0].text


def test_a_signal_ends_a_pod_that_still_waits_for_the_others(tmp_path: Path):
    with stage(tmp_path) as on:
        (on.job / "recommendation").mkdir(parents=True)
        (on.job / "recommendation" / "train.py").touch()
        for address in on.addresses[:2]:
            command = [sys.executable, "-m", "paddlejob.launch"]
            pod = on.start_one(address, command, {"TRAIN_CONFIG_DIR": "recommendation"})
            wait_until(lambda pod=pod: "waiting for 3 pods" in pod.text, "it waits", [pod])
            pod.process.send_signal(signal.SIGTERM)
            assert pod.wait() == 143
            assert "received SIGTERM before training started" in pod.text


def test_waiting_for_missing_pods_has_a_time_limit(tmp_path: Path):
    with stage(tmp_path) as on:
        (on.job / "recommendation").mkdir(parents=True)
        (on.job / "recommendation" / "train.py").touch()
        env = {"TRAIN_CONFIG_DIR": "recommendation", "JOB_WAIT_SECONDS": "1"}
        pods = [on.start_one(address, [sys.executable, str(START_PADDLE)], env) for address in on.addresses[:2]]
        assert [pod.wait() for pod in pods] == [2, 2]
        assert f"no connection from {on.addresses[2]} on port 7168, which must be open between the pods" in pods[0].text


def test_a_new_pod_does_not_join_a_group_that_is_about_to_end(cluster: Cluster):
    """The replacement of a dead pod still sees the others running; it joins them only after they are replaced, too."""
    cluster.wait_for_trainers()
    cluster.pods[0].kill()
    address = cluster.on.addresses[0]
    successor = cluster.on.start_one(address, [sys.executable, str(START_PADDLE)], cluster.env)
    assert [pod.wait() for pod in cluster.pods[1:]] == [75, 75]
    for other in cluster.on.addresses[1:]:
        cluster.on.start_one(other, [sys.executable, str(START_PADDLE)], cluster.env)
    for rank in range(3):
        cluster.finish(rank)
    assert [pod.wait() for pod in cluster.on.pods[3:]] == [0, 0, 0], successor.text


@pytest.mark.parametrize(
    ("happens", "statuses", "expected"),
    [
        ("the pod is stopped", [75, 75, 143], "received SIGTERM before training started"),
        ("another pod dies", [75, -9, 75], "is lost; training cannot continue without it"),
    ],
)
def test_a_pod_that_is_copying_its_data_stops_early(happens: str, statuses: list[int], expected: str, tmp_path: Path):
    with stage(tmp_path) as on:
        cluster = Cluster(on, tmp_path)
        data = on.job / "2" / "data"
        for number in range(30_000):
            os.link(data / "part.txt", data / str(number))
        pods = cluster.start().pods
        cluster.wait_for_trainers([0, 1])
        if happens == "another pod dies":
            pods[1].kill()
        else:
            pods[2].process.send_signal(signal.SIGTERM)
        assert [pod.wait() for pod in pods] == statuses
        assert expected in pods[2].text
        assert not cluster.trains(2)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_server_port_in_use_is_reported(rank: int, tmp_path: Path):
    with stage(tmp_path) as on, socket.create_server((on.addresses[rank], 7167)):
        cluster = Cluster(on, tmp_path).start(JOB_WAIT_SECONDS="2")
        assert [pod.wait() for pod in cluster.pods] == [2, 2, 2]
        expected = f"did not form a group within 2 s: port 7167 of this pod ({on.addresses[rank]}) is in use"
        assert expected in cluster.pods[rank].text


def test_training_starts_once_a_port_in_use_is_free(tmp_path: Path):
    with stage(tmp_path) as on:
        with socket.create_server((on.addresses[0], 7168)), socket.create_server((on.addresses[2], 7164)):
            cluster = Cluster(on, tmp_path).start()
            wait_until(lambda: all("waiting for 3" in pod.text for pod in cluster.pods), "they wait", cluster.pods)
            time.sleep(1)
            assert not any(cluster.trains(rank) for rank in range(3))
        cluster.wait_for_trainers()


def test_variables_that_are_missing_are_named_by_start_sh_as_well(tmp_path: Path):
    with stage(tmp_path) as on:
        pod = on.start_one(on.addresses[0], [str(START_SH)], {"JOB_NAME": "", "JOB_PATH": "", "TRAIN_CONFIG_DIR": ""})
        assert pod.wait() == 2
        for name in ("JOB_NAME", "JOB_PATH", "TRAIN_CONFIG_DIR"):
            assert f"{name}: not set; set it in the Job's env" in pod.text


def test_a_part_that_is_missing_ends_all_pods_with_the_reason(tmp_path: Path):
    with stage(tmp_path) as on:
        cluster = Cluster(on, tmp_path, parts=2).start()
        assert [pod.wait() for pod in cluster.pods] == [75, 75, 2]
        assert "no data for trainer 2; found parts 0, 1. Split the data" in cluster.pods[2].text
        assert "no data for trainer 2" in cluster.pods[0].text
