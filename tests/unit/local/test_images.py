"""The directories of images, and the command lines of their containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.images import EXAMPLES, argv, find_image, read_mapping
from paddlejob.local.runtime.volumes import copy_image

DEMO = "registry.baidubce.com/paddle-operator/demo-wide-and-deep:v1"
RESNET = "registry.baidubce.com/paddle-operator/demo-resnet:v1"
ELASTIC = "registry.baidubce.com/paddle-operator/demo-resnet:elastic"
DEEPFM = "registry.baidubce.com/paddle-operator/demo-deepfm:v1"


def command_of(options: RunOptions | None = None, **container: Any) -> list[str]:
    return argv({"name": "paddle", **container}, options or RunOptions())


def test_the_images_of_the_documents_run_the_examples():
    assert find_image(DEMO, RunOptions()).directory == EXAMPLES / "wide_and_deep"
    assert command_of(image=DEMO) == ["python3", "train.py"]
    assert command_of(image=RESNET) == ["python", "-m", "paddle.distributed.launch", "train_fleet.py"]


def test_the_images_of_paddle_operators_samples_run_programs_of_the_names_that_they_start():
    assert command_of(image=ELASTIC)[-1] == "train_fleet_dygraph_ckpt.py"
    assert command_of(image=DEEPFM) == ["python3", "train.py"]
    assert "running the bundled example deepfm." in find_image(DEEPFM, RunOptions()).note


def test_train_py_of_the_deepfm_image_is_deepfm_and_not_its_neighbour(tmp_path: Path):
    """The wrong model would train, and the job would complete."""
    image = find_image(DEEPFM, RunOptions())
    assert image.directory
    copied = copy_image(image.directory, tmp_path, image.renamed)
    assert (copied / "train.py").read_text() == (EXAMPLES / "wide_and_deep" / "deepfm.py").read_text()
    assert (copied / "ps_loop.py").is_file()


@pytest.mark.parametrize(
    "name",
    [
        "registry.mycompany.com/team-a/mnist:v3",
        "registry.mycompany.com/paddle-operator/demo-wide-and-deep:v1",
        "mnist",
        "mnist:v1",
        "paddlejob/mnist:v2",
        "paddlejob/mnist",
        "team/checkpoint:v1",
        "team/paddle:mypaddle",
        "team/paddle-ubuntu:2.0.0-18.04",
    ],
)
def test_an_image_of_another_registry_never_runs_a_bundled_program(name: str, tmp_path: Path):
    """The wrong program would train, and the job would complete."""
    image = find_image(name, RunOptions(folder=str(tmp_path)))
    assert image.directory == tmp_path
    assert not image.bundled
    assert image.files == {}


@pytest.mark.parametrize(
    "name", [DEMO, RESNET, ELASTIC, DEEPFM, "paddlejob/mnist:v1", "paddlepaddle/paddle-tutorial:k8s_train"]
)
def test_a_bundled_program_is_noted(name: str):
    note = find_image(name, RunOptions()).note
    assert f"Image {name} is not used locally; running the bundled" in note
    assert f"--image {name}=DIR" in note


def test_args_follow_an_entrypoint_and_replace_a_default_command():
    assert command_of(image=DEMO, args=["--epochs", "1"]) == ["python3", "train.py", "--epochs", "1"]
    assert command_of(image=RESNET, args=["bash"]) == ["bash"]
    assert command_of(image=DEMO, command=["bash"]) == ["bash"]


@pytest.mark.parametrize("spelling", ["repo.example/team/mine:v2", "repo.example/team/mine", "mine"])
def test_a_users_image_is_found_by_any_spelling(spelling: str, tmp_path: Path):
    options = RunOptions(images={spelling: {"directory": str(tmp_path)}})
    assert find_image("repo.example/team/mine:v2", options).directory == tmp_path


def test_the_port_of_a_registry_is_not_a_tag(tmp_path: Path):
    options = RunOptions(images={"localhost:5000/mine": {"directory": str(tmp_path)}})
    assert find_image("localhost:5000/mine:v2@sha256:0123", options).directory == tmp_path


def test_a_users_mapping_overrides_a_bundled_image(tmp_path: Path):
    options = RunOptions(images={DEMO: {"directory": str(tmp_path), "command": ["python", "mine.py"]}})
    assert command_of(options, image=DEMO) == ["python", "mine.py"]


def test_an_unknown_image_runs_the_code_beside_the_job_file_and_a_note_says_so(tmp_path: Path):
    image = find_image("whatever:v1", RunOptions(folder=str(tmp_path)))
    assert image.directory == tmp_path
    assert f"Image whatever:v1 is not used locally; running the code in {tmp_path}." in image.note
    assert "--image whatever:v1=DIR" in image.note
    with pytest.raises(NotPossible, match="no command"):
        command_of(image="whatever:v1")


def test_a_mapping_file_is_read_relative_to_itself(tmp_path: Path):
    file = tmp_path / "paddlejob-images.yaml"
    file.write_text("mine: code\nother: {directory: /data, command: [python, x.py]}\n")
    found = read_mapping(file)
    assert found["mine"]["directory"] == str(tmp_path / "code")
    assert found["other"] == {"directory": "/data", "command": ["python", "x.py"]}
    file.write_text("mine: 3\n")
    with pytest.raises(BadInput, match="mine"):
        read_mapping(file)
