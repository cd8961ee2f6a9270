"""A starter file is a valid job of the chosen mode, and no file is overwritten by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paddlejob.api.documents import documents
from paddlejob.api.validate import parse
from paddlejob.cli.verbs.init import LLM, STARTERS, starter_file
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


def test_a_device_is_named_without_a_number():
    rejected = pdj("init", "collective", "--device", "xpu:8")
    assert rejected.returncode == 2
    assert "--device: 'xpu:8' has a number; name the kind alone" in rejected.stderr


def test_the_file_is_written_once(tmp_path: Path):
    def init(*more: str) -> Called:
        return pdj("init", "single", "-o", "job.yaml", "--name", "mine", *more, folder=tmp_path)

    assert init().returncode == 0
    assert "name: mine" in (tmp_path / "job.yaml").read_text()
    again = init()
    assert (again.returncode, "already exists" in again.stderr) == (2, True)
    assert init("--force").returncode == 0


def test_a_new_file_trains_a_program_of_the_user(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/My Train.py").touch()
    done = pdj("init", "collective", "--program", "src/My Train.py", "-o", "job.yaml", folder=tmp_path)
    assert done.stdout == (
        "wrote job.yaml; run it with `pdj run job.yaml`, or on a cluster with `pdj submit job.yaml`\n"
    )
    made = yaml.safe_load((tmp_path / "job.yaml").read_text())
    container = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "-m", "paddle.distributed.launch", "src/My Train.py"]
    assert (made["metadata"]["name"], container["image"]) == ("my-train", "my-my-train:v1")
    again = pdj("init", "-o", "job.yaml", folder=tmp_path)
    assert "job.yaml already exists" in again.stderr
    assert pdj("init", "-o", "job.yaml", "--force", folder=tmp_path).returncode == 0
    assert (
        "x/job.yaml: no such directory: x; create it first" in pdj("init", "-o", "x/job.yaml", folder=tmp_path).stderr
    )
    assert "--program absent.py: no such file" in pdj("init", "--program", "absent.py", folder=tmp_path).stderr
    assert "use `pdj init collective --program`" in pdj("init", "llm", "--program", "x", folder=tmp_path).stderr
    (tmp_path / "deep").mkdir()
    pdj("init", "single", "--program", "src/My Train.py", "-o", "deep/job.yaml", folder=tmp_path)
    made = yaml.safe_load((tmp_path / "deep/job.yaml").read_text())
    assert made["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] == ["python", "../src/My Train.py"]


@pytest.mark.parametrize("mode", STARTERS)
def test_each_new_file_has_the_roles_and_the_image_of_its_example(mode: str):
    made = yaml.safe_load(starter_file(mode, "mine"))
    roles = {role: made["spec"][role]["replicas"] for role in ("ps", "worker", "heter") if role in made["spec"]}
    assert roles == {role: replicas for role, replicas, _ in STARTERS[mode].roles}
    assert made["metadata"]["name"] == "mine"
    assert ("withGloo" in made["spec"]) == (len(roles) > 1)
    assert yaml.safe_load(starter_file(mode))["metadata"]["name"] == STARTERS[mode].name
    for role in roles:
        container = made["spec"][role]["template"]["spec"]["containers"][0]
        assert container["image"] == STARTERS[mode].image
        assert ("command" in container) == bool(STARTERS[mode].command)
    shell = yaml.safe_load(starter_file(mode, program="run.sh"))
    assert shell["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] == ["bash", "run.sh"]
    assert "{name}" in LLM
