"""Images as directories with a default command. No image is pulled or run on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions

EXAMPLES = Path(__file__).parents[2] / "examples"
MAPPING_FILE = "paddlejob-images.yaml"
NO_IMAGE = "The job names no image"
_LAUNCHER = ("python", "-m", "paddle.distributed.launch")


@dataclass(frozen=True)
class Image:
    directory: Path | None
    """None: the image has no program of its own."""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    workdir: str = ""
    """The path of the directory inside the image."""
    bundled: bool = False
    """One of our examples; it is copied for every pod, so that pods do not share files."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Files of a bundled example that have another name in the image, by that name."""
    cwd: str = ""
    """The working directory, if it is not the image's directory."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Single files at other paths of the image."""
    note: str = ""


def _bundled(name: str, *, entrypoint: tuple[str, ...] = (), cmd: tuple[str, ...] = (), workdir: str = "") -> Image:
    return Image(EXAMPLES / name, entrypoint, cmd, workdir=workdir or f"/{name}", bundled=True)


_TRAIN = ("python3", "train.py")
_JOB_TRAINER = Image(
    None,
    cmd=("/bin/bash", "-c", "/root/start.sh"),
    cwd="/",
    files={f"/root/{name}": EXAMPLES / "k8s_train" / name for name in ("start.sh", "start_paddle.py")},
)
_DEEPFM = replace(_bundled("wide_and_deep", entrypoint=_TRAIN, workdir="/deepfm"), renamed={"train.py": "deepfm.py"})
_OF_THE_DOCUMENTS = "registry.baidubce.com/paddle-operator"
BUNDLED = {
    f"{_OF_THE_DOCUMENTS}/demo-wide-and-deep:v1": _bundled("wide_and_deep", entrypoint=_TRAIN),
    "registry.baidubce.com/kuizhiqing/demo-wide-and-deep:v1": _bundled("wide_and_deep", entrypoint=_TRAIN),
    f"{_OF_THE_DOCUMENTS}/demo-resnet:v1": _bundled(
        "collective", cmd=(*_LAUNCHER, "train_fleet.py"), workdir="/resnet"
    ),
    f"{_OF_THE_DOCUMENTS}/demo-resnet:elastic": _bundled(
        "collective", cmd=(*_LAUNCHER, "train_fleet_dygraph_ckpt.py"), workdir="/resnet"
    ),
    f"{_OF_THE_DOCUMENTS}/demo-deepfm:v1": _DEEPFM,
    f"{_OF_THE_DOCUMENTS}/paddle-ubuntu:2.0.0-18.04": Image(None),
    "paddlejob/deepfm:v1": _DEEPFM,
    "paddlejob/mnist:v1": _bundled("mnist", entrypoint=_TRAIN),
    "paddlejob/checkpoint:v1": _bundled("collective", entrypoint=_TRAIN, workdir="/checkpoint"),
    "paddlejob/heter:v1": _bundled("heter", entrypoint=_TRAIN),
    "paddlepaddle/paddle-tutorial:k8s_data": _bundled("k8s_data", cmd=("python3", "get_data.py")),
    "paddlepaddle/paddle-tutorial:k8s_train": _JOB_TRAINER,
    "[YOUR_REPO]/paddle:mypaddle": _JOB_TRAINER,
    "example/paddle:mypaddle": _JOB_TRAINER,
}
"""The images of the documents and of our examples, by their full names: a user's image may end in the same word."""


def find_image(name: str, options: RunOptions) -> Image:
    """The user's mapping first, then the bundled images; for an unknown image, the directory of the job file."""
    for spelling in spellings(name):
        if spelling in options.images:
            return _own(name, options.images[spelling])
    known = BUNDLED.get(name.removeprefix("docker.io/"))
    if known and (known.directory is None or known.directory.is_dir()):
        return replace(known, note=_bundled_note(name, known))
    folder = Path(options.folder or ".").absolute()
    if not name:
        return Image(folder, note=f"{NO_IMAGE}; running the code in {folder}.")
    note = f"Image {name} is not used locally; running the code in {folder}."
    return Image(folder, note=f"{note} Choose another with --image {name}=DIR.")


def _bundled_note(name: str, image: Image) -> str:
    """Which program of ours runs, because its results are easily taken for those of the user's own code."""
    if image.directory is None and not image.files:
        return ""
    program = f"example {image.workdir.lstrip('/')}" if image.directory else f"program {', '.join(image.files)}"
    return (
        f"Image {name} is not used locally; running the bundled {program}. Run your own code with --image {name}=DIR."
    )


def spellings(name: str) -> tuple[str, ...]:
    """The names that a user may give for an image: in full, without its tag, its last part."""
    return name, _untagged(name), _short(name)


def argv(container: dict[str, Any], options: RunOptions) -> list[str]:
    """The command line, by Kubernetes' rules for command, args, ENTRYPOINT and CMD."""
    image = find_image(container.get("image") or "", options)
    command, args = container.get("command") or [], container.get("args") or []
    if command:
        return [*command, *args]
    found = [*image.entrypoint, *(args or image.cmd)]
    if not found:
        raise NotPossible(
            f"container {container['name']} has no command, and {_no_default(container.get('image') or '')}"
        )
    return found


def _no_default(image: str) -> str:
    if not image:
        return "no image with a default command; add `command:` to the container"
    return (
        f"the default command of image {image} is not known here; add `command:` to the container or to {MAPPING_FILE}"
    )


def read_mapping(path: Path) -> dict[str, dict[str, Any]]:
    """`paddlejob-images.yaml`: image names, each with a directory or {directory, command, workdir}."""
    from paddlejob.api.documents import documents

    if not path.is_file():
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, value in documents(path.read_text(), str(path))[0].items():
        entry = {"directory": value} if isinstance(value, str) else value
        if not isinstance(entry, dict) or not isinstance(entry.get("directory"), str):
            raise BadInput(f"{path}: {name}: expected a directory, or a mapping with directory, command and workdir")
        found[name] = {**entry, "directory": str((path.parent / entry["directory"]).absolute())}
    return found


def _own(name: str, entry: dict[str, Any]) -> Image:
    directory = Path(entry["directory"]).expanduser()
    if not directory.is_dir():
        raise BadInput(f"image {name}: {directory} is not a directory")
    return Image(directory, tuple(entry.get("command") or ()), workdir=entry.get("workdir") or "")


def _untagged(name: str) -> str:
    head, _, last = name.partition("@")[0].rpartition("/")
    last = last.partition(":")[0]
    return f"{head}/{last}" if head else last


def _short(name: str) -> str:
    return _untagged(name).rpartition("/")[2]
