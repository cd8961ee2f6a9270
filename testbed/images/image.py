"""Container images built from directories, without Docker."""

from __future__ import annotations

import hashlib
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
LAYER_TYPE = "application/vnd.docker.image.rootfs.diff.tar"


@dataclass(frozen=True)
class Blob:
    """A file and its digest."""

    path: Path
    digest: str
    size: int

    @classmethod
    def of(cls, path: Path) -> Blob:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path, f"sha256:{digest}", path.stat().st_size)


@dataclass(frozen=True)
class Image:
    """A name such as docker.io/library/busybox:latest, layers from the bottom up, and how it runs."""

    name: str
    layers: Sequence[Blob]
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    working_directory: str = "/"

    @property
    def repository(self) -> str:
        """The name without its registry and its tag."""
        return self.name.rpartition(":")[0].split("/", 1)[1]

    @property
    def tag(self) -> str:
        return self.name.rpartition(":")[2]

    def config(self) -> bytes:
        """The image's configuration document."""
        run = {
            "Entrypoint": list(self.entrypoint) or None,
            "Cmd": list(self.command) or None,
            "Env": [f"{key}={value}" for key, value in self.environment.items()],
            "User": self.user,
            "WorkingDir": self.working_directory,
        }
        document = {
            "architecture": _architecture(),
            "os": "linux",
            "config": run,
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]},
            "history": [{"created_by": "paddlejob testbed"} for _ in self.layers],
        }
        return json.dumps(document).encode()

    def manifest(self) -> bytes:
        """The manifest under which a registry serves the image."""
        config = self.config()
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(CONFIG_TYPE, f"sha256:{hashlib.sha256(config).hexdigest()}", len(config)),
            "layers": [_descriptor(LAYER_TYPE, layer.digest, layer.size) for layer in self.layers],
        }
        return json.dumps(document).encode()


def layer(directory: Path, target: Path, at: str = "/") -> Blob:
    """Write the contents of `directory` as a layer to the file `target`; in the image they are below `at`.

    The same files give the same layer: the owner is root, and timestamps are those of the files.
    """
    prefix = at.strip("/")
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(directory.rglob("*")):
            inside = Path(prefix, path.relative_to(directory))
            tar.add(path, arcname=str(inside), recursive=False, filter=_as_root)
    return Blob.of(target)


def archive(image: Image, target: Path) -> Path:
    """Write the image as one file in docker-archive form, as `docker load` and `ctr image import` read it."""
    config = image.config()
    named = f"{hashlib.sha256(config).hexdigest()}.json"
    layers = [f"{one.digest.removeprefix('sha256:')}.tar" for one in image.layers]
    manifest = [{"Config": named, "RepoTags": [image.name], "Layers": layers}]
    scratch = target.with_suffix(".part")
    with tarfile.open(target, "w") as tar:
        for name, content in ((named, config), ("manifest.json", json.dumps(manifest).encode())):
            scratch.write_bytes(content)
            tar.add(scratch, arcname=name)
        for name, blob in zip(layers, image.layers, strict=True):
            tar.add(blob.path, arcname=name)
    scratch.unlink()
    return target


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest, "size": size}


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
