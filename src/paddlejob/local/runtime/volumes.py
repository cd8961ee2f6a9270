"""The volumes of a pod as directories, and the mounts of its containers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlejob.api.quantity import parse_quantity
from paddlejob.errors import BadInput, NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, expand, field_value, key_of, secrets
from paddlejob.local.sandbox.mounts import Mount
from paddlejob.local.state.store import JobStore, file_name

SHARED_MEMORY = "/dev/shm"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class VolumeSource:
    """Where the files of a volume are."""

    path: Path
    files: dict[str, str] | None = None
    """Written into the directory before a pod starts."""
    memory: bool = False
    """A file system in memory is mounted there for the containers of the pod."""
    size: int = 0
    note: str = ""
    readonly: bool = False


def find_source(volume: Manifest, namespace: str, own: Path, options: RunOptions, store: JobStore) -> VolumeSource:
    """`own` is the directory of this pod alone. Nothing is created yet."""
    name = _component(volume["name"])
    match {key: value for key, value in volume.items() if key != "name" and value is not None}:
        case {"emptyDir": empty}:
            if empty.get("medium") == "Memory":
                return VolumeSource(own / name, memory=True, size=int(parse_quantity(empty.get("sizeLimit") or 0)))
            return VolumeSource(own / name)
        case {"hostPath": {"path": path}}:
            return _host_path(path, options, store)
        case {"persistentVolumeClaim": claim}:
            source = _claim(claim["claimName"], namespace, options, store)
            return VolumeSource(source.path, note=source.note, readonly=bool(claim.get("readOnly")))
        case {"configMap": reference}:
            return VolumeSource(own / name, files=_files("ConfigMap", reference, config_maps(options.objects)))
        case {"secret": reference}:
            named = {**reference, "name": reference.get("secretName")}
            return VolumeSource(own / name, files=_files("Secret", named, secrets(options.objects)))
        case {"downwardAPI": _}:
            return VolumeSource(own / name, files={})
        case {"nfs": nfs}:
            return _nfs(nfs, options)
        case other if not other:
            return VolumeSource(own / name)  # The API server makes it an emptyDir.
        case other:
            kind = next(iter(other))
            raise NotPossible(
                f"volume {name}: {kind} is not supported on one machine; use a hostPath, or a persistentVolumeClaim "
                "with --volume CLAIM=DIR"
            )


def _component(name: str) -> str:
    """The name of a volume or claim, if it can be that of a directory."""
    try:
        return file_name(name)
    except BadInput as error:
        raise NotPossible(f"volume {error}") from None


def _relative(path: str, what: str) -> str:
    """A path inside a volume, by Kubernetes' rules."""
    if not path or Path(path).is_absolute() or ".." in Path(path).parts:
        raise NotPossible(f"{what} {path} points outside the volume; use a relative path without '..'")
    return path


def _host_path(path: str, options: RunOptions, store: JobStore) -> VolumeSource:
    if ".." in Path(path).parts:
        raise NotPossible(f"hostPath {path} must not contain '..'")
    for prefix, directory in options.host_paths.items():
        if Path(path).is_relative_to(prefix):
            return VolumeSource(Path(directory) / Path(path).relative_to(prefix))
    if Path(path).exists():
        return VolumeSource(Path(path))
    substitute = store.root / "host" / path.lstrip("/")
    note = f"hostPath {path} does not exist here; using {substitute}. Choose another with --volume {path}=DIR."
    return VolumeSource(substitute, note=note)


def _nfs(nfs: Manifest, options: RunOptions) -> VolumeSource:
    name = f"{nfs['server']}:{nfs['path']}"
    if name in options.volumes:
        return VolumeSource(Path(options.volumes[name]))
    raise NotPossible(f"NFS volume {name} is not mounted here; choose a directory for it with --volume {name}=DIR")


def _claim(claim: str, namespace: str, options: RunOptions, store: JobStore) -> VolumeSource:
    """The user's choice; else the hostPath of its volume in the same file; else a directory that is kept."""
    if claim in options.volumes:
        return VolumeSource(Path(options.volumes[claim]))
    document = options.object("PersistentVolumeClaim", claim) or {"spec": {}}
    volume = options.object("PersistentVolume", document["spec"].get("volumeName") or "")
    if volume and "hostPath" in volume["spec"]:
        return _host_path(volume["spec"]["hostPath"]["path"], options, store)
    kept = store.claim(namespace, _component(claim))
    return VolumeSource(
        kept, note=f"Claim {claim} is stored in {kept}. Choose another directory with --volume {claim}=DIR."
    )


def named(volume: Manifest) -> str:
    """Its name in `--volume NAME=DIR`; empty if the option cannot replace it."""
    match volume:
        case {"persistentVolumeClaim": {"claimName": claim}}:
            return str(claim)
        case {"hostPath": {"path": path}}:
            return str(path)
        case {"nfs": {"server": server, "path": path}}:
            return f"{server}:{path}"
    return ""


def _files(kind: str, reference: Manifest, objects: dict[str, dict[str, str]]) -> dict[str, str]:
    found = objects.get(reference.get("name") or "")
    if found is None:
        if reference.get("optional"):
            return {}
        raise NotPossible(f"{kind} {reference.get('name')} does not exist; add it to the job file")
    items = reference.get("items")
    named = [one for one in items or [] if one["key"] in found or not reference.get("optional")]
    chosen = {one["path"]: key_of(kind, reference["name"], one["key"], found) for one in named}
    files = chosen if items else found
    return {_relative(path, f"volume with {kind} {reference['name']}: file"): text for path, text in files.items()}


def create(volume: Manifest, source: VolumeSource, facts: PodFacts) -> None:
    """Create the directory of a volume and the files in it."""
    if not source.path.exists():
        source.path.mkdir(parents=True, exist_ok=True)
    files = source.files
    if "downwardAPI" in volume:
        items = volume["downwardAPI"].get("items") or []
        files = {
            _relative(one["path"], "downwardAPI: file"): field_value(one["fieldRef"]["fieldPath"], facts)
            for one in items
            if "fieldRef" in one
        }
    for name, text in (files or {}).items():
        file = source.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode(errors="surrogateescape"))


def mounts_of(
    container: Manifest, sources: dict[str, VolumeSource], host_paths: Mapping[str, str], variables: Mapping[str, str]
) -> list[Mount]:
    """`host_paths` are paths of this machine and the directories to mount there; volumes are mounted over them."""
    found: list[Mount] = [{"target": path, "source": directory} for path, directory in host_paths.items()]
    for one in container.get("volumeMounts") or []:
        source = sources[one["name"]]
        path = source.path / _sub_path(one, variables)
        mount: Mount = {
            "target": one["mountPath"],
            "source": str(path.absolute()),
            "readonly": bool(one.get("readOnly")) or source.readonly,
        }
        if source.memory:
            mount["memory"] = str(source.path.absolute())
            if source.size:
                mount["size"] = source.size
        else:
            _create_part(path, source.path)
        found.append(mount)
    return found


def _sub_path(mount: Manifest, variables: Mapping[str, str]) -> str:
    """The part of a volume that is mounted; empty for all of it."""
    expression = mount.get("subPathExpr")
    if not expression:
        return _relative(mount["subPath"], "subPath") if mount.get("subPath") else ""
    path = expand(expression, variables)
    if unknown := re.search(r"\$\(([^)]+)\)", path):
        raise NotPossible(f"subPathExpr {expression}: the container has no variable {unknown[1]}; add it to env")
    return _relative(path, "subPathExpr")


def _create_part(path: Path, volume: Path) -> None:
    """Programs write to the volume, so it may contain links."""
    if not path.resolve().is_relative_to(volume.resolve()):
        raise NotPossible(f"subPath {path.relative_to(volume)} points outside the volume; remove the link in {volume}")
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)


def copy_image(directory: Path, own: Path, renamed: Mapping[str, str]) -> Path:
    """A copy of a bundled example for one pod, so that pods do not share the files that they write next to it."""
    copied = own / "image"
    shutil.copytree(directory, copied, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    for name, source in renamed.items():
        shutil.copyfile(directory / source, copied / name)
    return copied
