"""The directories of images, and the command lines of their containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.images import EXAMPLES, argv, find_image, read_mapping
from paddlejob.local.runtime.volumes import copy_image

DOCUMENTS = "registry.baidubce.com/paddle-operator"
DEMO, RESNET, DEEPFM = (f"{DOCUMENTS}/demo-{name}:v1" for name in ("wide-and-deep", "resnet", "deepfm"))
LAUNCH = ["python", "-m", "paddle.distributed.launch"]


def command_of(options: RunOptions | None = None, **container: Any) -> list[str]:
    return argv({"name": "paddle", **container}, options or RunOptions())


@pytest.mark.parametrize(
    ("name", "directory", "workdir", "command"),
    [
        (DEMO, "wide_and_deep", "/wide_and_deep", ["python3", "train.py"]),
        (RESNET, "collective", "/resnet", [*LAUNCH, "train_fleet.py"]),
        (f"{DOCUMENTS}/demo-resnet:elastic", "collective", "/resnet", [*LAUNCH, "train_fleet_dygraph_ckpt.py"]),
        (DEMO.replace("paddle-operator", "kuizhiqing"), "wide_and_deep", "/wide_and_deep", ["python3", "train.py"]),
        (DEEPFM, "wide_and_deep", "/deepfm", ["python3", "train.py"]),
        ("paddlejob/deepfm:v1", "wide_and_deep", "/deepfm", ["python3", "train.py"]),
        ("paddlejob/mnist:v1", "mnist", "/mnist", ["python3", "train.py"]),
        ("docker.io/paddlejob/mnist:v1", "mnist", "/mnist", ["python3", "train.py"]),
        ("paddlejob/checkpoint:v1", "collective", "/checkpoint", ["python3", "train.py"]),
        ("paddlejob/heter:v1", "heter", "/heter", ["python3", "train.py"]),
        ("paddlepaddle/paddle-tutorial:k8s_data", "k8s_data", "/k8s_data", ["python3", "get_data.py"]),
    ],
)
def test_each_image_of_the_documents_runs_its_example_and_that_is_noted(
    name: str, directory: str, workdir: str, command: list[str]
):
    image = find_image(name, RunOptions())
    assert (image.directory, image.workdir, image.bundled) == (EXAMPLES / directory, workdir, True)
    assert command_of(image=name) == command
    assert image.note == (
        f"Image {name} is not used locally; running the bundled example {workdir[1:]}. "
        f"Run your own code with --image {name}=DIR."
    )


@pytest.mark.parametrize(
    "name", ["paddlepaddle/paddle-tutorial:k8s_train", "[YOUR_REPO]/paddle:mypaddle", "example/paddle:mypaddle"]
)
def test_the_image_of_a_batch_job_starts_paddle_by_its_script(name: str):
    image = find_image(name, RunOptions())
    assert (image.directory, image.cwd, set(image.files)) == (None, "/", {"/root/start.sh", "/root/start_paddle.py"})
    assert command_of(image=name) == ["/bin/bash", "-c", "/root/start.sh"]
    assert "running the bundled program /root/start.sh, /root/start_paddle.py." in image.note


def test_an_image_without_a_program_needs_no_note():
    image = find_image(f"{DOCUMENTS}/paddle-ubuntu:2.0.0-18.04", RunOptions())
    assert (image.directory, image.note) == (None, "")


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


def test_args_follow_an_entrypoint_and_replace_a_default_command():
    assert command_of(image=DEMO, args=["--epochs", "1"]) == ["python3", "train.py", "--epochs", "1"]
    assert command_of(image=RESNET, args=["bash"]) == ["bash"]
    assert command_of(image=DEMO, command=["bash"]) == ["bash"]


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("repo.example/team/mine:v2", "repo.example/team/mine:v2"),
        ("repo.example/team/mine:v2", "repo.example/team/mine"),
        ("repo.example/team/mine:v2", "mine"),
        ("localhost:5000/mine:v2@sha256:0123", "localhost:5000/mine"),
        ("mine:1", "mine"),
    ],
)
def test_a_users_image_is_found_by_any_spelling_and_the_port_of_a_registry_is_no_tag(
    name: str, spelling: str, tmp_path: Path
):
    options = RunOptions(images={spelling: {"directory": str(tmp_path)}})
    assert find_image(name, options).directory == tmp_path


def test_a_users_mapping_overrides_a_bundled_image(tmp_path: Path):
    options = RunOptions(images={DEMO: {"directory": str(tmp_path), "command": ["python", "mine.py"]}})
    assert command_of(options, image=DEMO) == ["python", "mine.py"]


def test_an_unknown_image_runs_the_code_beside_the_job_file_and_a_note_says_so(tmp_path: Path):
    image = find_image("whatever:v1", RunOptions(folder=str(tmp_path)))
    assert image.directory == tmp_path
    assert f"Image whatever:v1 is not used locally; running the code in {tmp_path}." in image.note
    assert "--image whatever:v1=DIR" in image.note
    with pytest.raises(NotPossible, match="no command, and the default command of image whatever:v1 is not known"):
        command_of(image="whatever:v1")


def test_a_job_without_an_image_runs_the_code_beside_its_file(tmp_path: Path):
    options = RunOptions(folder=str(tmp_path))
    assert find_image("", options).note == f"The job names no image; running the code in {tmp_path}."
    with pytest.raises(NotPossible, match="no image with a default command; add `command:` to the container"):
        command_of(options)


def test_the_directory_of_an_image_has_to_exist(tmp_path: Path):
    with pytest.raises(BadInput, match=f"image mine: {tmp_path}/absent is not a directory"):
        find_image("mine", RunOptions(images={"mine": {"directory": str(tmp_path / "absent")}}))


def test_a_mapping_file_is_read_relative_to_itself(tmp_path: Path):
    file = tmp_path / "paddlejob-images.yaml"
    assert read_mapping(file) == {}
    file.write_text("mine: code\nother: {directory: /data, command: [python, x.py]}\n")
    found = read_mapping(file)
    assert found["mine"]["directory"] == str(tmp_path / "code")
    assert found["other"] == {"directory": "/data", "command": ["python", "x.py"]}
    file.write_text("mine: 3\n")
    with pytest.raises(BadInput, match="mine"):
        read_mapping(file)
