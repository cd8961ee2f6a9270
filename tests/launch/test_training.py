"""Three pods of a Job really train with today's Paddle: the documents' way from the data to the last pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paddlejob.local.sandbox.supervisor import probe
from tests.launch.pods import START_SH, Pod, Stage, get_data, stage, wait_until

SAMPLES = 3000


@pytest.mark.full
def test_three_trainers_read_each_part_once_and_the_model_learns(tmp_path: Path):
    with stage(tmp_path) as on:
        get_data(on, 3, SAMPLES).check_returncode()
        pods = on.start([str(START_SH)], {"NUM_PASSES": "10"})
        statuses = [pod.wait() for pod in pods]
        output = "\n".join(pod.text for pod in pods)
        assert statuses == [0, 0, 0], output
        assert _tree(on.job) >= DOCUMENT_TREE
        assert [_read_by(pod) for pod in pods] == [[(0, 0, 999)], [(1, 1000, 1999)], [(2, 2000, 2999)]], output
        accuracies = _numbers(on, "accuracy")
        assert len(accuracies) == 10
        assert accuracies[-1] > 0.75, accuracies
        assert "is listening on" in pods[0].text, "server.log reaches standard output"
        assert (on.job / "output/pass-00009/path.txt").read_text() == "trainer_config.lr.py\n"


@pytest.mark.full
def test_when_a_pod_is_killed_the_others_exit_and_a_new_group_resumes_from_the_last_pass(tmp_path: Path):
    """It is the first pod, which all others are connected to and which writes the passes. New pods have new addresses.

    The last of the new pods does not see any pass yet, as can happen with a network file system.
    """
    with stage(tmp_path) as on:
        get_data(on, 3, SAMPLES).check_returncode()
        pods = on.start([str(START_SH)], {"NUM_PASSES": "500"})
        wait_until((on.job / "output" / "pass-00001").is_dir, "two passes are written", pods)
        pods[0].kill()
        assert [pod.wait() for pod in pods[1:]] == [75, 75], pods[1].text
        for pod in pods[1:]:
            assert f"trainer 0 ({on.addresses[0]}) is lost; training cannot continue without it" in pod.text

        reached = max(path.name for path in (on.job / "output").glob("pass-*"))
        on.move()
        extra = {"NUM_PASSES": str(int(reached[5:]) + 2)}
        again = [on.start_one(address, [str(START_SH)], extra) for address in on.addresses[:2]]
        again += [on.start_one(on.addresses[2], [str(START_SH), f"--save_dir={tmp_path}/old-view"], extra)]
        assert [pod.wait() for pod in again] == [0, 0, 0], again[0].text
        for pod in again:
            assert f"resumes after {reached}" in pod.text
            assert "pass 0 " not in pod.text
        assert f"pass {int(reached[5:]) + 1} wrote" in again[0].text
        assert [_read_by(pod) for pod in again] == [[(0, 0, 999)], [(1, 1000, 1999)], [(2, 2000, 2999)]]
        losses = _numbers(on, "loss")
        assert losses[-1] < losses[0] - 0.05, "it resumed from the saved parameters"
        assert list((on.job / "output").glob(".pass-*")) == [], "the partial pass of the killed pod is removed"


@pytest.mark.skipif(not probe()[0], reason="no mount namespaces here")
def test_a_full_volume_fails_training_with_an_error_and_leaves_no_partial_pass(tmp_path: Path):
    """Paddle itself reports no error when it cannot write its parameters."""
    with stage(tmp_path, trainers=1) as on:
        get_data(on, 1, 500).check_returncode()
        mount = f"mount -t tmpfs -o size=8k none {on.job}/output && {START_SH}; status=$?"
        look = f"find {on.job}/output -name '*pass*'; exit $status"
        isolated = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mount}; {look}"]
        pod = on.start_one(on.addresses[0], isolated, {"NUM_PASSES": "3"})
        assert pod.wait() == 1
        assert (
            "cannot write pass 0: ___fc_layer_0__.w0 is smaller than 800 bytes; check whether the volume is full"
            in pod.text
        )
        assert "Traceback" not in pod.text
        assert f"{on.job}/output/" not in pod.text, "no files of a pass are left"


DOCUMENT_TREE = {
    *(f"{part}/data" for part in range(3)),
    *(f"output/node_{node}/{log}" for node in range(3) for log in ("server.log", "train.log")),
    *(
        f"output/pass-0000{number}/{file}"
        for number in range(10)
        for file in ("___fc_layer_0__.w0", "___fc_layer_0__.wbias", "done", "path.txt", "trainer_config.lr.py")
    ),
    "quick_start",
}


def _tree(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def _read_by(pod: Pod) -> list[tuple[int, int, int]]:
    """Each time that its trainer read: its id, and the first and the last review."""
    found = re.findall(r"trainer (\d+) read \d+ reviews: (\d+)-(\d+)$", pod.text, re.MULTILINE)
    return [(int(rank), int(first), int(last)) for rank, first, last in found]


def _numbers(on: Stage, name: str) -> list[float]:
    """Of each pass, as the first trainer measured it."""
    log = (on.job / "output" / "node_0" / "train.log").read_text()
    return [float(value) for value in re.findall(rf"wrote .* {name}=([\d.]+)", log)]
