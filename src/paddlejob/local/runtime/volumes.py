"""Volumes of a pod as directories, and where a container mounts them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlejob.errors import NotPossible
from paddlejob.local.machine.resources import amount
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, field_value, secrets
from paddlejob.local.sandbox.mounts import Mount
from paddlejob.local.store import Store

SHARED_MEMORY = "/dev/shm"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """What a volume stands for. Without a path it is memory."""

    path: Path | None = None
    files: dict[str, str] | None = None
    """Written into the directory before a pod starts."""
    size: int = 0
    note: str = ""
    readonly: bool = False


def find_source(volume: Manifest, namespace: str, own: Path, options: RunOptions, store: Store) -> Source:
    """`own` is the directory of this pod alone. Nothing is made yet."""
    name = volume["name"]
    match {key: value for key, value in volume.items() if key != "name" and value is not None}:
        case {"emptyDir": empty}:
            if empty.get("medium") == "Memory":
                return Source(size=int(amount(empty.get("sizeLimit") or 0)))
            return Source(own / name)
        case {"hostPath": {"path": path}}:
            return _host_path(path, options, store)
        case {"persistentVolumeClaim": claim}:
            source = _claim(claim["claimName"], namespace, options, store)
            return Source(source.path, note=source.note, readonly=bool(claim.get("readOnly")))
        case {"configMap": reference}:
            return Source(own / name, files=_files("ConfigMap", reference, config_maps(options.objects)))
        case {"secret": reference}:
            named = {**reference, "name": reference.get("secretName")}
            return Source(own / name, files=_files("Secret", named, secrets(options.objects)))
        case {"downwardAPI": _}:
            return Source(own / name, files={})
        case {"nfs": nfs}:
            return _nfs(nfs, options)
        case other:
            kind = next(iter(other), "of no kind")
            raise NotPossible(
                f"volume {name}: {kind} cannot be had on one machine; use a hostPath or a persistentVolumeClaim with "
                "--volume CLAIM=DIR"
            )


def _host_path(path: str, options: RunOptions, store: Store) -> Source:
    for place, directory in options.places.items():
        if Path(path).is_relative_to(place):
            return Source(Path(directory) / Path(path).relative_to(place))
    if Path(path).exists():
        return Source(Path(path))
    stand_in = store.root / "host" / path.lstrip("/")
    note = f"hostPath {path} is not on this machine: {stand_in} stands in for it (--volume {path}=DIR names another)"
    return Source(stand_in, note=note)


def _nfs(nfs: Manifest, options: RunOptions) -> Source:
    name = f"{nfs['server']}:{nfs['path']}"
    if name in options.volumes:
        return Source(Path(options.volumes[name]))
    raise NotPossible(f"nfs {name} is not mounted here; name a directory for it: --volume {name}=DIR")


def _claim(claim: str, namespace: str, options: RunOptions, store: Store) -> Source:
    """What the user named; else what a volume in the same file says; else a directory that is kept."""
    if claim in options.volumes:
        return Source(Path(options.volumes[claim]))
    document = options.object("PersistentVolumeClaim", claim) or {"spec": {}}
    volume = options.object("PersistentVolume", document["spec"].get("volumeName") or "")
    if volume and "hostPath" in volume["spec"]:
        return _host_path(volume["spec"]["hostPath"]["path"], options, store)
    kept = store.claim(namespace, claim)
    return Source(kept, note=f"claim {claim} is kept in {kept} (--volume {claim}=DIR names another directory)")


def named(volume: Manifest) -> str:
    """What `--volume NAME=DIR` calls it; empty where nothing else can stand for it."""
    match volume:
        case {"persistentVolumeClaim": {"claimName": claim}}:
            return str(claim)
        case {"hostPath": {"path": path}}:
            return str(path)
        case {"nfs": {"server": server, "path": path}}:
            return f"{server}:{path}"
    return ""


def _files(kind: str, reference: Manifest, objects: dict[str, dict[str, str]]) -> dict[str, str]:
    found = objects.get(reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise NotPossible(f"{kind} {reference['name']} is not there; put it into the same file as the job")
    items = reference.get("items")
    return {one["path"]: found[one["key"]] for one in items} if items else found


def make(volume: Manifest, source: Source, facts: PodFacts) -> None:
    if source.path is None:
        return
    if not source.path.exists():
        source.path.mkdir(parents=True, exist_ok=True)
    files = source.files
    if "downwardAPI" in volume:
        items = volume["downwardAPI"].get("items") or []
        files = {one["path"]: field_value(one["fieldRef"]["fieldPath"], facts) for one in items if "fieldRef" in one}
    for name, text in (files or {}).items():
        place = source.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def mounts_of(container: Manifest, sources: dict[str, Source], places: Mapping[str, str]) -> list[Mount]:
    """`places` are directories of this machine that others stand for; a volume at the same path covers them."""
    found: list[Mount] = [{"target": place, "source": directory} for place, directory in places.items()]
    for one in container.get("volumeMounts") or []:
        source = sources[one["name"]]
        mount: Mount = {"target": one["mountPath"], "readonly": bool(one.get("readOnly")) or source.readonly}
        if source.path:
            path = source.path / one["subPath"] if one.get("subPath") else source.path
            if not path.exists():
                path.mkdir(parents=True, exist_ok=True)
            mount["source"] = str(path.absolute())
        elif source.size:
            mount["size"] = source.size
        found.append(mount)
    return found


def copy_image(directory: Path, own: Path) -> Path:
    """A copy of a bundled example, so that what a program writes beside itself stays its own."""
    place = own / "image"
    shutil.copytree(directory, place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    return place
