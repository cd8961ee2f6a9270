"""Real training on real processes, from the files that a cluster takes."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from paddlejob.local.runtime.images import EXAMPLES
from paddlejob.local.sandbox.proc import descendants
from paddlejob.local.sandbox.supervisor import probe
from tests.support.pdj import Pdj, wait

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
pytestmark = pytest.mark.xdist_group("training")

DOCUMENTS = Path(__file__).parents[2] / "deploy" / "examples"
LONG = 180.0


def trained(pdj: Pdj, name: str, attempt: int = 1) -> dict[str, float]:
    """The figures of the line that the first worker ends with."""
    log = pdj.log(name, "worker-0", attempt)
    last = next(line for line in reversed(log.splitlines()) if "final " in line)
    return {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", last)}


def test_a_killed_server_restarts_the_job_which_resumes_and_completes(pdj: Pdj):
    pdj.environment |= {"EPOCHS": "4", "SAMPLES": "6000", "OUTPUT_DIR": str(pdj.folder / "model")}
    running = pdj.start("run", str(DOCUMENTS / "wide_and_deep.yaml"))
    name = "wide-ande-deep"
    wait(lambda: "epoch 2/4" in pdj.log(name, "worker-0"), lambda: pdj.log(name, "worker-0"), LONG)
    server = next(pod for pod in pdj.folder_of(name).pods() if pod.name.endswith("ps-1"))
    os.kill(descendants(server.pid)[0], signal.SIGKILL)
    output, _ = running.communicate(timeout=LONG)
    assert running.returncode == 0, output
    assert pdj.status(name).restarts == 1
    assert "resumes" in pdj.log(name, "worker-0", attempt=2)
    scores = trained(pdj, name, attempt=2)
    assert scores["auc"] > scores["untrained_auc"] + 0.1


@pytest.mark.full
def test_a_killed_collective_worker_restarts_the_job_which_resumes_and_completes(pdj: Pdj):
    pdj.environment |= {
        "STEPS": "60",
        "SAVE_EVERY": "10",
        "STEP_SECONDS": "0.05",
        "OUTPUT_DIR": str(pdj.folder / "out"),
    }
    running = pdj.start("run", pdj.write("check", workers=2, container={"image": "paddlejob/checkpoint:v1"}))
    saved = lambda: list((pdj.folder / "out").rglob("*")) and pdj.status("check").phase == "Running"  # noqa: E731
    wait(lambda: bool(saved()), lambda: pdj.log("check", "worker-0"), LONG)
    worker = next(pod for pod in pdj.folder_of("check").pods() if pod.name.endswith("worker-1"))
    os.kill(descendants(worker.pid)[-1], signal.SIGKILL)
    output, _ = running.communicate(timeout=LONG)
    assert running.returncode == 0, output
    assert pdj.status("check").restarts == 1


@pytest.mark.full
def test_a_document_for_gpus_trains_on_the_cpu_with_the_flag(pdj: Pdj):
    pdj.environment |= {"EPOCHS": "1", "SAMPLES": "2000"}
    done = pdj("run", "--cpu", str(DOCUMENTS / "wide_and_deep_gpu.yaml"), timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ignored because of --cpu: worker: nvidia.com/gpu 1" in done.stderr
    assert "auc" in trained(pdj, "wide-ande-deep")


@pytest.mark.skipif(not probe()[0], reason="no mount namespaces here")
def test_the_other_documents_train_all_at_once(pdj: Pdj):
    """With a claim, for Volcano, for GPUs: ten processes of three jobs, none of which gets in another's way."""
    pdj.environment |= {"EPOCHS": "1", "SAMPLES": "2000"}
    shutil.copytree(EXAMPLES / "wide_and_deep", pdj.folder / "nas" / "wide_and_deep")
    files = [str(DOCUMENTS / name) for name in ("data_demo.yaml", "wide_and_deep_volcano.yaml", "resnet.yaml")]
    done = pdj("run", "--cpu", "--volume", f"nfs-pvc={pdj.folder / 'nas'}", *files, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "auc" in trained(pdj, "paddlejob-demo-1")
    assert "auc" in trained(pdj, "wide-ande-deep")
    assert "accuracy" in trained(pdj, "resnet")
    assert [pdj.status(name).restarts for name in ("paddlejob-demo-1", "wide-ande-deep", "resnet")] == [0, 0, 0]
    assert "not used on a single machine: PodGroup wide-ande-deep" in done.stderr


def test_the_logs_of_all_processes_of_the_launcher_outlive_their_pod(pdj: Pdj):
    program = pdj.folder / "says.py"
    program.write_text("import os; print('I am process', os.environ['PADDLE_LOCAL_RANK'])\n")
    launch = ["python", "-m", "paddle.distributed.launch", "--nproc_per_node", "2"]
    done = pdj("run", pdj.write("own", command=[*launch, str(program)], workers=1), timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = pdj.folder_of("own").path / "logs" / "attempt-1" / "own-worker-0"
    assert "I am process 1" in (kept / "workerlog.1").read_text()
    chosen = pdj.folder / "chosen"
    done = pdj("run", pdj.write("own", command=[*launch, "--log_dir", str(chosen), str(program)], workers=1))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "I am process 1" in (chosen / "workerlog.1").read_text()
