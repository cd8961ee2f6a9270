"""What the replacement of the first worker does to the parameters on the servers (docs/decisions/0008)."""

from __future__ import annotations

import importlib.util
import re
import time
from pathlib import Path

import pytest

from tests.examples.roles import EXAMPLES, PATIENCE, Pod, join_ps_job, stage, start_ps_job

if importlib.util.find_spec("paddle") is None:
    pytest.skip("tests/examples needs Paddle: pip install 'paddlejob[paddle]'", allow_module_level=True)


def loss(pod: Pod, line: str) -> float:
    """The value in the first line that begins like this, once it is there."""
    deadline = time.monotonic() + PATIENCE
    while not (found := re.search(rf"^{line}.* loss=([\d.]+)", pod.text, re.M)):
        assert time.monotonic() < deadline and pod.process.poll() is None, pod.text[-3000:]
        time.sleep(0.1)
    return float(found[1])


@pytest.mark.full
def test_the_first_worker_keeps_what_the_servers_have_learned_with_test_mode_and_undoes_it_without(tmp_path: Path):
    """Nothing else trains, so that what it finds is what the servers hold."""
    with stage(tmp_path, EXAMPLES / "wide_and_deep" / "train.py", EPOCHS="40") as job:
        _, (worker,) = start_ps_job(job, servers=1, workers=1, gloo=False)
        untrained, learned = loss(worker, "untrained"), loss(worker, "epoch 3/")
        assert learned < untrained - 0.2
        worker.process.kill()
        keeps = join_ps_job(job, "keeps", 0, servers=1, workers=1, TEST_MODE="1")
        assert loss(keeps, "joins") < learned + 0.05
        assert loss(keeps, "epoch 1/") < learned + 0.05
        keeps.process.kill()
        undoes = join_ps_job(job, "undoes", 0, servers=1, workers=1)
        assert loss(undoes, "joins") > learned + 0.08, "otherwise TEST_MODE is no longer needed"
