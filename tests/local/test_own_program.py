"""The programs and commands in docs/howto/own-program.md, copied from the page and run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from paddlejob import contract
from paddlejob.local.runtime.images import MAPPING_FILE, read_mapping
from paddlejob.local.sandbox.supervisor import probe
from tests.support.pages import copy_files
from tests.support.pdj import Pdj

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own-program.md"
TRAINS = pytest.mark.skipif(
    importlib.util.find_spec("paddle") is None or not probe()[0], reason="needs PaddlePaddle and mount namespaces"
)
pytestmark = pytest.mark.xdist_group("training")
LONG = 180.0
MADE_FROM = {contract.ENV_HOST_OPEN, contract.ENV_HOST_CLOSE, contract.ENV_RANK_OF}
OUR_OWN = {*MADE_FROM, contract.ENV_AGENT_URL, contract.ENV_AGENT_ATTEMPT}
"""What other variables are made from, and what the agent reads; no program gets them."""


def launched(folder: Path) -> Path:
    """The job file with the launcher's command, in a directory where the page's mapping says what its image is."""
    (command,) = re.findall(r"^ +command: .*paddle\.distributed\.launch.*$", PAGE.read_text(), re.MULTILINE)
    text, changed = re.subn(
        r"^ +command: .*$", command, (folder / "collective/job.yaml").read_text(), flags=re.MULTILINE
    )
    assert changed == 1
    path = folder / "jobs" / "job.yaml"
    path.write_text(text)
    return path


def losses(log: str) -> list[float]:
    return [float(value) for value in re.findall(r"loss=([\d.]+)", log)]


@TRAINS
def test_both_programs_learn_and_the_launcher_resumes_from_the_checkpoint(pdj: Pdj):
    copy_files(PAGE, pdj.folder)
    pdj.environment["OMP_NUM_THREADS"] = "1"
    done = pdj("run", "collective/job.yaml", "servers/job.yaml", timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "worker 1 of 2 starts after step 0" in pdj.log("mine", "worker-1")
    together = losses(pdj.log("mine", "worker-0"))
    assert together[0] > 0.001 > together[-1]
    knows_all = [losses(pdj.log("mine-ps", f"worker-{index}"))[-1] for index in range(2)]
    assert min(knows_all) < 0.01, "each has seen half of the ids; untrained it would be 0.5"

    pdj.environment["STEPS"] = "250"
    done = pdj("run", str(launched(pdj.folder)), timeout=LONG)
    assert done.returncode == 0, done.stdout + done.stderr
    log = pdj.log("mine", "worker-0")
    assert "worker 0 of 2 starts after step 200" in log
    assert "step 250 loss=" in log


@TRAINS
@pytest.mark.full
def test_the_checkpoint_example_says_when_nothing_is_left_and_how_to_start_again(pdj: Pdj):
    pdj.environment |= {"STEPS": "10", "SAVE_EVERY": "5", "OUTPUT_DIR": str(pdj.folder / "out")}
    job = pdj.write("check", container={"image": "paddlejob/checkpoint:v1"})
    assert pdj("run", job, timeout=LONG).returncode == 0
    assert "nothing left" not in pdj.log("check", "worker-0")
    assert pdj("run", job, timeout=LONG).returncode == 0
    assert f"nothing left to train; empty {pdj.folder / 'out'} to start over" in pdj.log("check", "worker-0")


def test_every_variable_that_a_program_receives_is_in_the_table():
    table = set(re.findall(r"`([A-Z_]+)`", "".join(re.findall(r"^\| `.*$", PAGE.read_text(), re.MULTILINE))))
    variables = {value for name, value in vars(contract).items() if name.startswith("ENV_") and isinstance(value, str)}
    assert variables - OUR_OWN - table == set()
    assert table - variables == {"TRAINER", "PSERVER", "HETER_TRAINER"}


def test_the_mapping_of_images_is_one_that_we_read(tmp_path: Path):
    copy_files(PAGE, tmp_path)
    found = read_mapping(tmp_path / "jobs" / MAPPING_FILE)
    assert [Path(entry["directory"]).resolve().name for entry in found.values()] == ["collective", "servers"]
    assert found["registry.example.com/mine-ps"].keys() == {"directory", "command", "workdir"}


def test_the_image_has_the_paddle_that_the_examples_have(tmp_path: Path):
    copy_files(PAGE, tmp_path)
    ours = PAGE.parents[2] / "examples" / "Dockerfiles" / "checkpoint.Dockerfile"
    (wanted,) = re.findall(r"^RUN pip install .*$", ours.read_text(), re.MULTILINE)
    assert wanted in (tmp_path / "collective/Dockerfile").read_text()
