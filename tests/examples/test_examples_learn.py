"""Each example runs as real processes and learns: it passes a bound that its untrained model misses."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.examples.roles import EXAMPLES, PATIENCE, Pod, Stage, stage, start_collective_job, start_ps_job, stopped_in

if importlib.util.find_spec("paddle") is None:
    pytest.skip("tests/examples needs Paddle: pip install 'paddlejob[paddle]'", allow_module_level=True)

LAUNCH = ("-m", "paddle.distributed.launch")


def finished(pods: list[Pod]) -> Pod:
    """The first of the pods, once all have succeeded."""
    for pod in pods:
        assert pod.wait() == 0, f"{pod.name}:\n{pod.text[-3000:]}"
    return pods[0]


@pytest.mark.full
def test_wide_and_deep_learns_on_two_servers_and_two_workers_from_any_directory(tmp_path: Path):
    home = tmp_path / "广告 点击 & clicks" / "wide_and_deep"
    shutil.copytree(EXAMPLES / "wide_and_deep", home)
    before = sorted(path.name for path in home.iterdir())
    with stage(tmp_path / "logs 日志", home / "train.py", PYTHONDONTWRITEBYTECODE="1") as job:
        servers, workers = start_ps_job(job)
        metrics = finished(workers).metrics()
        assert metrics["auc"] > 0.85 > 0.6 > metrics["untrained_auc"] > 0.4
        assert "18,000 samples" in workers[1].text
        assert [server.process.poll() for server in servers] == [None, None], "a server runs until it is stopped"
        assert stopped_in(servers) < 20
        assert "Traceback" not in servers[0].text
        assert "FatalError" not in servers[0].text
        assert job.left_over() == []
    assert sorted(path.name for path in home.iterdir()) == before, "nothing is written beside the program"


@pytest.mark.full
def test_deepfm_resumes_after_the_last_complete_epoch_and_keeps_learning(tmp_path: Path):
    output = tmp_path / "out 输出"
    program = EXAMPLES / "wide_and_deep" / "deepfm.py"
    with stage(tmp_path / "first", program, OUTPUT_DIR=str(output), EPOCHS="2") as job:
        first = finished(start_ps_job(job)[1]).metrics()
    (output / "epoch-3").mkdir()  # as if the servers had died while they saved
    with stage(tmp_path / "second", program, OUTPUT_DIR=str(output), EPOCHS="4") as job:
        worker = finished(start_ps_job(job)[1])
    assert "resumes after epoch 2 of 4" in worker.text
    assert "epoch 2/4" not in worker.text
    second = worker.metrics()
    assert second["untrained_auc"] == first["untrained_auc"] < 0.6
    assert second["auc"] > 0.85
    assert second["loss"] < first["loss"]
    assert sorted(path.name for path in output.iterdir()) == ["epoch-3", "epoch-4", "latest.json"]


def test_a_server_that_is_stopped_before_the_workers_start_leaves_no_helper_process(tmp_path: Path):
    with stage(tmp_path, EXAMPLES / "wide_and_deep" / "train.py") as job:
        (server,), _ = start_ps_job(job, servers=1, workers=0)
        deadline = time.monotonic() + PATIENCE
        while len(job.left_over()) < 3 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert len(job.left_over()) == 3, "the server, gloo's rendezvous server and its manager"
        assert stopped_in([server]) < 20
        assert job.left_over() == []


def test_a_program_for_parameter_servers_reports_what_is_missing_when_run_by_hand():
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PADDLE", "TRAINING"))}
    command = [sys.executable, str(EXAMPLES / "wide_and_deep" / "train.py")]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "PADDLE_PSERVERS_IP_PORT_LIST is not set" in done.stderr
    assert "pdj run" in done.stderr


@pytest.mark.full
def test_resnet_learns_under_the_launcher(tmp_path: Path):
    with stage(tmp_path, *LAUNCH, EXAMPLES / "collective" / "train_fleet.py", EPOCHS="3") as job:
        metrics = finished(start_collective_job(job)).metrics()
        assert metrics["accuracy"] > 0.6 > 0.35 > metrics["untrained_accuracy"]
        assert job.left_over() == []


def test_mnist_learns_in_one_process(tmp_path: Path):
    with stage(tmp_path, EXAMPLES / "mnist" / "train.py", OUTPUT_DIR=str(tmp_path / "model")) as job:
        metrics = finished([job.start("worker-0", {})]).metrics()
    assert metrics["accuracy"] > 0.85 > 0.3 > metrics["untrained_accuracy"]
    assert (tmp_path / "model" / "mnist.pdparams").stat().st_size > 10_000


def test_mnist_reads_the_public_files(tmp_path: Path):
    """Files in MNIST's format, of ten digits that are each one bright row: easy, and only from the files."""
    for name, count in (("train", 600), ("t10k", 100)):
        labels = [number % 10 for number in range(count)]
        images = b"".join(bytes(255 * (row // 28 == label + 9) for row in range(784)) for label in labels)
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">IIII", 2051, count, 28, 28) + images)
        )
        (tmp_path / f"{name}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">II", 2049, count) + bytes(labels))
        )
    with stage(tmp_path / "logs", EXAMPLES / "mnist" / "train.py", DATA_DIR=str(tmp_path), EPOCHS="4") as job:
        metrics = finished([job.start("worker-0", {})]).metrics()
    assert metrics["accuracy"] > 0.85 > 0.3 > metrics["untrained_accuracy"]


def test_a_killed_collective_job_ends_with_the_same_model_as_an_uninterrupted_one(tmp_path: Path):
    program = EXAMPLES / "collective" / "train.py"
    with stage(tmp_path / "uninterrupted", program) as job:
        uninterrupted = finished(start_collective_job(job)).metrics()
    assert uninterrupted["accuracy"] > 0.95 > 0.5 > uninterrupted["untrained_accuracy"]

    failing = {"OUTPUT_DIR": str(tmp_path / "saved 存"), "FAIL_AT_STEP": "220"}
    with stage(tmp_path / "killed", program, **failing) as job:
        survivor, killed = start_collective_job(job)
        assert killed.wait() == 17
        assert survivor.wait() != 0, "Paddle ends the peers of a dead worker"
        assert "step=200/400 " in survivor.text
    with stage(tmp_path / "again", program, **failing) as job:
        worker = finished(start_collective_job(job))
    assert "starts after step 200 of 400" in worker.text
    assert worker.metrics() == uninterrupted


def heter_env(job: Stage, role: str, index: int) -> dict[str, str]:
    """Two stages: workers, then heter pods."""
    servers, workers, heters = job.endpoints(1, 1), job.endpoints(101, 2), job.endpoints(201, 2)
    mine = {"PSERVER": servers, "TRAINER": workers, "HETER_TRAINER": heters}[role][index]
    return {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(servers),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(workers),
        "PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST": ",".join(heters),
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_TRAINER_ID": str(index),
        "TRAINING_ROLE": role,
        "POD_IP": mine.rsplit(":", 1)[0],
        "PADDLE_PORT": str(job.port),
        "STAGE_ID": "2" if role == "HETER_TRAINER" else "1",
        "STAGE_NUM": "2",
        "PADDLE_STAGE_TRAINERS_NUM": "[2,2]",
        "PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST": ",".join(heters) if role == "TRAINER" else "",
        "PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST": ",".join(workers),
        "HETER_DEVICE_TYPE": "cpu",
    }


def test_every_pod_of_a_heter_job_reports_its_role_its_index_and_its_peers(tmp_path: Path):
    with stage(tmp_path, EXAMPLES / "heter" / "train.py") as job:
        workers = [job.start(f"worker-{index}", heter_env(job, "TRAINER", index)) for index in range(2)]
        server = job.start("ps-0", heter_env(job, "PSERVER", 0))
        heter = job.start("heter-1", heter_env(job, "HETER_TRAINER", 1))
        finished(workers)
        reports = {pod.name: _report(pod) for pod in (*workers, server, heter)}
        assert {name: (report["role"], report["index"]) for name, report in reports.items()} == {
            "worker-0": ("worker", 0),
            "worker-1": ("worker", 1),
            "ps-0": ("server", 0),
            "heter-1": ("heter", 1),
        }
        assert all(report["heters"] == job.endpoints(201, 2) for report in reports.values())
        assert reports["heter-1"]["role_id"] == 3
        assert [server.process.poll(), heter.process.poll()] == [None, None]
        stopped_in([server, heter])
        assert job.left_over() == []


def test_a_heter_pod_reports_an_inconsistent_environment(tmp_path: Path):
    with stage(tmp_path, EXAMPLES / "heter" / "train.py") as job:
        pod = job.start("worker-0", heter_env(job, "TRAINER", 0) | {"POD_IP": "127.9.9.9"})
        assert pod.wait() == 1
        assert "this pod is at 127.9.9.9" in pod.text


def _report(pod: Pod) -> dict[str, object]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in pod.text.splitlines():
            if line.startswith("{"):
                return dict(json.loads(line))
        time.sleep(0.2)
    raise AssertionError(f"{pod.name} printed no report:\n{pod.text}")
