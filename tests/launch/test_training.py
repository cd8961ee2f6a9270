"""Three pods of a Job really train with today's Paddle: the documents' way from the data to the last pass."""

from __future__ import annotations

import re
from pathlib import Path

from tests.launch.pods import START_SH, Pod, Stage, get_data, stage, wait_until

SAMPLES = 3000


def test_three_trainers_read_each_part_once_and_the_model_learns(tmp_path: Path):
    with stage(tmp_path) as on:
        get_data(on, 3, SAMPLES).check_returncode()
        pods = on.start([str(START_SH)], {"NUM_PASSES": "10"})
        statuses = [pod.wait() for pod in pods]
        said = "\n".join(pod.text for pod in pods)
        assert statuses == [0, 0, 0], said
        assert _tree(on.job) >= DOCUMENT_TREE
        assert _read_by(pods) == [(0, 999), (1000, 1999), (2000, 2999)], said
        accuracies = _numbers(on, "accuracy")
        assert len(accuracies) == 10
        assert accuracies[-1] > 0.75, accuracies
        assert "serves at" in pods[0].text, "server.log reaches standard output"
        assert (on.job / "output/pass-00009/path.txt").read_text().strip().endswith("output/pass-00009")


def test_when_a_pod_is_killed_the_others_end_and_a_new_group_goes_on_from_the_last_pass(tmp_path: Path):
    with stage(tmp_path) as on:
        get_data(on, 3, SAMPLES).check_returncode()
        pods = on.start([str(START_SH)], {"NUM_PASSES": "500"})
        wait_until((on.job / "output" / "pass-00001").is_dir, "two passes are written", pods)
        pods[2].kill()
        survivors = [pod.wait() for pod in pods[:2]]
        assert survivors == [75, 75], pods[0].text
        assert f"trainer 2 ({on.addresses[2]}) is gone" in pods[0].text
        assert f"trainer 2 ({on.addresses[2]}) is gone" in pods[1].text

        reached = max(path.name for path in (on.job / "output").glob("pass-*"))
        again = on.start([str(START_SH)], {"NUM_PASSES": str(int(reached[5:]) + 2)})
        assert [pod.wait() for pod in again] == [0, 0, 0], again[0].text
        assert f"goes on after {reached}" in again[0].text
        assert f"pass {int(reached[5:]) + 1} wrote" in again[0].text
        assert "pass 0 " not in again[0].text
        losses = _numbers(on, "loss")
        assert losses[-1] < losses[0] - 0.05, "it went on with what was learned"


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


def _read_by(pods: list[Pod]) -> list[tuple[int, int]]:
    """What each trainer says it read, from its own log."""
    found = [re.search(r"read \d+ reviews: (\d+)-(\d+)$", pod.text, re.MULTILINE) for pod in pods]
    return sorted((int(match[1]), int(match[2])) for match in found if match)


def _numbers(on: Stage, name: str) -> list[float]:
    """Of each pass, as the first trainer measured it."""
    log = (on.job / "output" / "node_0" / "train.log").read_text()
    return [float(value) for value in re.findall(rf"wrote .* {name}=([\d.]+)", log)]
