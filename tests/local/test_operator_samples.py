"""The samples of paddle-operator run unchanged: the bundled programs train in place of their images."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlejob.local.sandbox.supervisor import probe
from tests.support.pdj import Pdj

pytest.importorskip("paddle", reason="PaddlePaddle is not installed")
pytestmark = [
    pytest.mark.xdist_group("training"),
    pytest.mark.skipif(not probe()[0], reason="no mount namespaces here"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
REGISTRY = "registry.baidubce.com/paddle-operator"
LONG = 300.0


def losses(log: str) -> list[float]:
    return [float(value) for value in re.findall(r"^step=.* loss=([\d.]+)", log, re.MULTILINE)]


def final(log: str, metric: str) -> tuple[float, float]:
    """A metric of the trained and of the untrained model."""
    (found,) = re.findall(rf"^final .*?\b{metric}=([\d.]+) .*untrained_{metric}=([\d.]+)", log, re.MULTILINE)
    return float(found[0]), float(found[1])


@pytest.mark.full
def test_the_elastic_sample_trains_without_gpus_and_a_second_run_resumes_from_its_checkpoint(pdj: Pdj):
    pdj.environment |= {"OMP_NUM_THREADS": "1", "EPOCHS": "2"}
    sample = str(EXAMPLES / "elastic" / "job.yaml")
    done = pdj("run", "--cpu", sample, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        f"Image {REGISTRY}/demo-resnet:elastic is not used locally; running the bundled example resnet" in done.stderr
    )
    assert "ignored because of --cpu: worker: nvidia.com/gpu 1" in done.stderr
    kept = pdj.state / "host" / "home/work/checkpoint"
    assert f"hostPath /home/work/checkpoint does not exist here; using {kept}" in done.stderr
    first = pdj.log("resnet-elastic", "worker-0")
    assert "worker 0 of 3 starts after step 0 of 62" in first
    assert "checkpoint step=62 saved" in first
    assert len(list(kept.glob("step-*.pdckpt"))) == 2

    pdj.environment["EPOCHS"] = "4"
    done = pdj("run", "--cpu", sample, timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    second = pdj.log("resnet-elastic", "worker-0")
    assert "worker 0 of 3 starts after step 62 of 124" in second
    assert losses(second)[0] < losses(first)[0], "it goes on where the first run ended"
    trained, untrained = final(second, "accuracy")
    assert trained > 0.6 > untrained


@pytest.mark.full
def test_the_deepfm_sample_trains(pdj: Pdj):
    done = pdj("run", "--cpu", str(EXAMPLES / "deepfm" / "job.yaml"), timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Image {REGISTRY}/demo-deepfm:v1 is not used locally; running the bundled example deepfm" in done.stderr
    trained, untrained = final(pdj.log("deepfm", "worker-0"), "auc")
    assert trained > 0.85 > untrained
