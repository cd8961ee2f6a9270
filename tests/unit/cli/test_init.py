"""A starter file is a valid job of the chosen mode, and no file is overwritten by accident."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlejob.api.documents import documents
from paddlejob.api.validate import parse
from paddlejob.cli.verbs.init import STARTERS, starter_file
from paddlejob.errors import InvalidJob
from tests.support.called_pdj import Called, pdj


@pytest.mark.parametrize(
    ("mode", "expected"), [("ps", "PS"), ("collective", "Collective"), ("single", "Single"), ("heter", "Heter")]
)
def test_each_mode(mode: str, expected: str):
    job = parse(documents(starter_file(mode), "x")[0])
    assert job.mode == expected
    assert job.name == STARTERS[mode].name


@pytest.mark.parametrize("mode", STARTERS)
def test_every_container_has_a_command_or_one_to_uncomment(mode: str):
    text = starter_file(mode).replace("# command:", "command:")
    job = parse(documents(text, "x")[0])
    containers = [spec.template["spec"]["containers"][0] for spec in job.spec.roles.values()]
    assert [one["command"][0] for one in containers] == ["python"] * len(containers)


def test_a_job_for_large_language_models_is_valid_and_has_what_nodes_with_gpus_need():
    job = parse(documents(starter_file("llm", "ernie"), "x")[0])
    assert (job.name, job.mode) == ("ernie", "Collective")
    pod = job.spec.worker.template["spec"] if job.spec.worker else {}
    (container,) = pod["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert {"medium": "Memory", "sizeLimit": "64Gi"} in [one.get("emptyDir") for one in pod["volumes"]]


def test_an_invalid_name_is_rejected():
    with pytest.raises(InvalidJob, match=r"metadata\.name"):
        starter_file("ps", "Not_A_Name")


def test_the_file_is_written_once(tmp_path: Path):
    def init(*more: str) -> Called:
        return pdj("init", "single", "-o", "job.yaml", "--name", "mine", *more, folder=tmp_path)

    assert init().returncode == 0
    assert "name: mine" in (tmp_path / "job.yaml").read_text()
    again = init()
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert init("--force").returncode == 0
