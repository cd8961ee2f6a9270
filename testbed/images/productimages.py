"""The product's own images, built without Docker: the operator, and training images under the documents' names."""

from __future__ import annotations

import shutil
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddlejob.operator.manifests import IMAGE as OPERATOR
from testbed.build.binaries import Say
from testbed.images.image import Blob, Image, layer
from testbed.images.layers import debian, python_packages
from testbed.images.registry import Registry

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/paddlejob"
EXAMPLES = SOURCES / "examples"
LIBRARIES = "/opt/python"
DOCUMENTS = "registry.baidubce.com/paddle-operator"
TUTORIAL = "docker.io/paddlepaddle/paddle-tutorial"
OURS = "docker.io/paddlejob"
LAUNCHER = ("python", "-m", "paddle.distributed.launch")
TRAIN = ("python3", "train.py")
SYSTEM = ("python3", "libgomp1", "bash")


@dataclass(frozen=True)
class Training:
    """A training image: the directory of an example, its path in the image, and its command."""

    name: str
    directory: str = ""
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    at: str = ""
    working_directory: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Files of the directory that have another name in the image, by that name."""


TRAINING = (
    Training(f"{DOCUMENTS}/demo-wide-and-deep:v1", "wide_and_deep", TRAIN),
    Training(f"{DOCUMENTS}/demo-resnet:v1", "collective", command=(*LAUNCHER, "train_fleet.py"), at="/resnet"),
    Training(
        f"{DOCUMENTS}/demo-resnet:elastic",
        "collective",
        command=(*LAUNCHER, "train_fleet_dygraph_ckpt.py"),
        at="/resnet",
    ),
    *(
        Training(name, "wide_and_deep", TRAIN, at="/deepfm", renamed={"train.py": "deepfm.py"})
        for name in (f"{DOCUMENTS}/demo-deepfm:v1", f"{OURS}/deepfm:v1")
    ),
    Training(f"{DOCUMENTS}/paddle-ubuntu:2.0.0-18.04"),
    Training(f"{OURS}/mnist:v1", "mnist", TRAIN),
    Training(f"{OURS}/checkpoint:v1", "collective", TRAIN, at="/checkpoint"),
    Training(f"{OURS}/heter:v1", "heter", TRAIN),
    *(
        Training(name, "k8s_train", command=("/bin/bash", "-c", "/root/start.sh"), at="/root", working_directory="/")
        for name in (f"{TUTORIAL}:k8s_train", "docker.io/example/paddle:mypaddle")
    ),
)


def push_programs(registry: Registry, say: Say) -> None:
    """Push the operator and the image that splits data, with paddlejob from the working tree."""
    environment = {"PYTHONPATH": LIBRARIES, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    with tempfile.TemporaryDirectory(prefix="testbed-image-") as scratch:
        layers = [debian(SYSTEM, say), python_packages(_dependencies(), LIBRARIES, say), _program(Path(scratch))]
        registry.push(
            Image(
                f"docker.io/{OPERATOR}",
                layers,
                entrypoint=["python3", "-m", "paddlejob"],
                environment=environment,
                user="65532",
            )
        )
        data = f"{LIBRARIES}/paddlejob/examples/k8s_data"
        registry.push(
            Image(
                f"{TUTORIAL}:k8s_data",
                layers,
                command=["python3", "get_data.py"],
                environment=environment,
                working_directory=data,
            )
        )


def push_training(registry: Registry, say: Say, names: Sequence[str] = ()) -> None:
    """Push training images with real PaddlePaddle: those named, or all of them."""
    chosen = [image for image in TRAINING if not names or image.name in names]
    with tempfile.TemporaryDirectory(prefix="testbed-image-") as scratch:
        base = [debian(SYSTEM, say), python_packages(_extra("paddle"), LIBRARIES, say), _python_link(Path(scratch))]
        for number, image in enumerate(chosen):
            registry.push(_training(image, base, Path(scratch, str(number))))


def _training(training: Training, base: list[Blob], scratch: Path) -> Image:
    layers = list(base)
    if training.directory:
        shutil.copytree(EXAMPLES / training.directory, scratch / "tree", ignore=shutil.ignore_patterns("__pycache__"))
        for name, source in training.renamed.items():
            shutil.copyfile(EXAMPLES / training.directory / source, scratch / "tree" / name)
        layers.append(layer(scratch / "tree", scratch / "layer.tar", at=training.at or f"/{training.directory}"))
    return Image(
        training.name,
        layers,
        entrypoint=training.entrypoint,
        command=training.command,
        environment={"PYTHONPATH": LIBRARIES, "PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED": "1"},
        working_directory=training.working_directory or training.at or f"/{training.directory}",
    )


def _program(scratch: Path) -> Blob:
    tree = scratch / "program"
    shutil.copytree(SOURCES, tree, ignore=shutil.ignore_patterns("__pycache__"))
    return layer(tree, scratch / "program.tar", at=f"{LIBRARIES}/paddlejob")


def _python_link(scratch: Path) -> Blob:
    """The documents use both `python` and `python3`."""
    links = scratch / "links"
    links.mkdir()
    (links / "python").symlink_to("/usr/bin/python3")
    return layer(links, scratch / "links.tar", at="/usr/local/bin")


def _dependencies() -> list[str]:
    found: list[str] = _project()["dependencies"]
    return found


def _extra(name: str) -> list[str]:
    found: list[str] = _project()["optional-dependencies"][name]
    return found


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project
