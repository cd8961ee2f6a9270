"""With the `paddle` command of 2016 in the image, its very command lines are used. A recorder stands in for it."""

from __future__ import annotations

import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.launch.pods import START_PADDLE, START_SH, Stage, stage, wait_until

RECORDER = """#!/bin/bash
# paddle pserver serves until it is ended; paddle train ends when the file `go` is there, with the status in it.
echo "$*" >> "$RECORD/$1-$PADDLEJOB_POD_IP"
echo "this is $1"
echo "$(cat data/part.txt)" > "$RECORD/data-$PADDLEJOB_POD_IP"
if [ "$1" = pserver ]; then exec sleep 600; fi
while [ ! -e "$RECORD/go-$PADDLEJOB_POD_IP" ]; do sleep 0.1; done
exit "$(cat "$RECORD/go-$PADDLEJOB_POD_IP")"
"""


class Cluster:
    """Three pods whose `paddle` only records."""

    def __init__(self, on: Stage, directory: Path, parts: int = 3) -> None:
        self.on = on
        self.record = directory / "record"
        self.bin = directory / "bin"
        for made in (self.record, self.bin, on.job / "recommendation"):
            made.mkdir(parents=True)
        (on.job / "recommendation" / "trainer_config.py").touch()
        for part in range(parts):
            (on.job / str(part) / "data").mkdir(parents=True)
            (on.job / str(part) / "data" / "part.txt").write_text(f"part {part}\n")
        (self.bin / "paddle").write_text(RECORDER)
        (self.bin / "paddle").chmod(0o755)
        self.env = {
            "PATH": f"{self.bin}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "RECORD": str(self.record),
            "TRAIN_CONFIG_DIR": "recommendation",
            "TRAINER_COUNT": "4",
        }
        self.pods = on.start([str(START_SH)], self.env)

    def wait_for_trainers(self) -> None:
        trains = [self.record / f"train-{address}" for address in self.on.addresses]
        wait_until(lambda: all(train.exists() for train in trains), "all trainers run", self.pods)

    def finish(self, rank: int, status: int = 0) -> None:
        draft = self.record / "draft"
        draft.write_text(str(status))
        draft.rename(self.record / f"go-{self.on.addresses[rank]}")

    def recorded(self, what: str, rank: int) -> list[str]:
        return shlex.split((self.record / f"{what}-{self.on.addresses[rank]}").read_text())


@pytest.fixture
def cluster(tmp_path: Path):
    with stage(tmp_path) as on:
        yield Cluster(on, tmp_path)


def test_server_and_trainer_get_the_documents_flags_in_the_documents_order(cluster: Cluster):
    cluster.wait_for_trainers()
    for rank in range(3):
        assert cluster.recorded("train", rank) == [
            "train",
            "--nics=eth0",
            "--port=7164",
            "--ports_num=2",
            "--comment=paddle_process_by_paddle",
            f"--pservers={','.join(cluster.on.addresses)}",
            "--ports_num_for_sparse=2",
            "--config=./trainer_config.py",
            "--trainer_count=4",
            "--num_passes=10",
            "--use_gpu=0",
            "--log_period=50",
            "--dot_period=10",
            "--saving_period=1",
            "--local=0",
            f"--trainer_id={rank}",
            f"--save_dir={cluster.on.job}/output",
            "--num_gradient_servers=3",
        ]
        assert cluster.recorded("pserver", rank) == [
            "pserver",
            "--nics=eth0",
            "--port=7164",
            "--ports_num=2",
            "--ports_num_for_sparse=2",
            "--num_gradient_servers=3",
            "--comment=paddle_process_by_paddle",
        ]
        assert cluster.recorded("data", rank) == ["part", str(rank)]


def test_servers_stay_until_training_has_ended_everywhere(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.finish(0)
    cluster.finish(2)
    pods = cluster.pods
    wait_until(lambda: "its server stays" in pods[0].text and "its server stays" in pods[2].text, "two ended", pods)
    cluster.finish(1)
    assert [pod.wait() for pod in pods] == [0, 0, 0]
    for rank in range(3):
        node = cluster.on.job / "output" / f"node_{rank}"
        assert (node / "train.log").read_text() == "this is train\n"
        assert (node / "server.log").read_text() == "this is pserver\n"
        assert "this is train\n" in pods[rank].text


def test_the_status_of_a_trainer_that_fails_is_its_pods_and_the_others_end_too(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.finish(1, status=42)
    assert [pod.wait() for pod in cluster.pods] == [75, 42, 75]
    for rank in (0, 2):
        assert f"trainer 1 ({cluster.on.addresses[1]}) failed with status 42" in cluster.pods[rank].text


def test_the_death_of_the_first_pod_is_noticed_by_the_others(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.pods[0].kill()
    assert [pod.wait() for pod in cluster.pods[1:]] == [75, 75]
    assert f"trainer 0 ({cluster.on.addresses[0]}) is gone" in cluster.pods[2].text


def test_a_signal_reaches_the_processes_and_the_other_pods(cluster: Cluster):
    cluster.wait_for_trainers()
    cluster.pods[2].process.send_signal(signal.SIGTERM)
    assert [pod.wait() for pod in cluster.pods] == [75, 75, 143]
    assert "was told to stop (SIGTERM)" in cluster.pods[0].text


def test_a_signal_ends_a_pod_that_still_waits_for_the_others(tmp_path: Path):
    with stage(tmp_path) as on:
        (on.job / "recommendation").mkdir(parents=True)
        (on.job / "recommendation" / "train.py").touch()
        for address in on.addresses[:2]:
            words = [sys.executable, "-m", "paddlejob.launch"]
            pod = on.start_one(address, words, {"TRAIN_CONFIG_DIR": "recommendation"})
            wait_until(lambda pod=pod: "waiting for 3 pods" in pod.text, "it waits", [pod])
            pod.process.send_signal(signal.SIGTERM)
            assert pod.wait() == 143
            assert "told to stop (SIGTERM) before training" in pod.text


def test_pods_that_do_not_come_are_waited_for_only_so_long(tmp_path: Path):
    with stage(tmp_path) as on:
        (on.job / "recommendation").mkdir(parents=True)
        (on.job / "recommendation" / "train.py").touch()
        env = {"TRAIN_CONFIG_DIR": "recommendation", "JOB_WAIT_SECONDS": "1"}
        pods = [on.start_one(address, [sys.executable, str(START_PADDLE)], env) for address in on.addresses[:2]]
        assert [pod.wait() for pod in pods] == [2, 2]
        assert f"no word from {on.addresses[2]}" in pods[0].text
        assert "port 7168 must be open between them" in pods[0].text


def test_a_new_pod_does_not_join_those_of_a_group_that_is_about_to_end(cluster: Cluster):
    """The pod that takes a dead one's place still sees the others run; it meets them only when they are new as well."""
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


def test_a_part_that_is_missing_ends_all_pods_with_the_reason(tmp_path: Path):
    with stage(tmp_path) as on:
        cluster = Cluster(on, tmp_path, parts=2)
        assert [pod.wait() for pod in cluster.pods] == [75, 75, 2]
        assert "trainer 2 has no data; there are parts 0, 1. Split the data" in cluster.pods[2].text
        assert "trainer 2 has no data" in cluster.pods[0].text
