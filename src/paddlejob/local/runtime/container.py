"""The environment of a container, by Kubernetes' rules."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paddlejob.api.quantity import limits, parse_quantity, requests
from paddlejob.errors import NotPossible

Manifest = dict[str, Any]
REFERENCE = re.compile(r"\$\$|\$\(([^)]+)\)")


@dataclass(frozen=True)
class PodFacts:
    """The fields of a pod that its containers can refer to, and the objects that they can read values from."""

    manifest: Manifest
    address: str
    uid: str
    node: str
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace $(NAME); an undefined name stays as it is, and $$ is a dollar sign."""

    def put(found: re.Match[str]) -> str:
        name = found[1]
        return "$" if name is None else variables.get(name, found[0])

    return REFERENCE.sub(put, text)


def environment(container: Manifest, facts: PodFacts) -> dict[str, str]:
    """envFrom in order, then env, where each variable may refer to earlier ones."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        prefix = source.get("prefix", "")
        variables |= {prefix + name: value for name, value in _from_source(source, facts).items()}
    for one in container.get("env") or []:
        if "valueFrom" in one:
            value = _value_from(one["valueFrom"], container, facts)
            if value is not None:
                variables[one["name"]] = value
        else:
            variables[one["name"]] = expand(one.get("value") or "", variables)
    return variables


def _from_source(source: Manifest, facts: PodFacts) -> Mapping[str, str]:
    for key, kind, objects in (
        ("configMapRef", "ConfigMap", facts.config_maps),
        ("secretRef", "Secret", facts.secrets),
    ):
        if key in source:
            return _object(kind, source[key], objects)
    return {}


def _object(kind: str, reference: Manifest, objects: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    name = reference.get("name") or ""
    if name in objects:
        return objects[name]
    if reference.get("optional"):
        return {}
    raise NotPossible(f"{kind} {name} does not exist; add it to the job file")


def key_of(kind: str, name: str, key: str, values: Mapping[str, str]) -> str:
    if key not in values:
        raise NotPossible(f"{kind} {name} has no key {key}; add it, or correct the key in the template")
    return values[key]


def _value_from(source: Manifest, container: Manifest, facts: PodFacts) -> str | None:
    if "fieldRef" in source:
        return field_value(source["fieldRef"]["fieldPath"], facts)
    if "resourceFieldRef" in source:
        return _resource(source["resourceFieldRef"], container)
    for key, kind, objects in (
        ("configMapKeyRef", "ConfigMap", facts.config_maps),
        ("secretKeyRef", "Secret", facts.secrets),
    ):
        if key in source:
            reference = source[key]
            values = _object(kind, reference, objects)
            if reference["key"] not in values and reference.get("optional"):
                return None
            return key_of(kind, reference.get("name") or "", reference["key"], values)
    raise NotPossible(f"valueFrom {', '.join(source)} is not supported on one machine; write the value itself")


def field_value(path: str, facts: PodFacts) -> str:
    metadata = facts.manifest["metadata"]
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if keyed:
        return str((metadata.get(keyed[1]) or {}).get(keyed[2], ""))
    simple: dict[str, Callable[[], str]] = {
        "metadata.name": lambda: metadata["name"],
        "metadata.namespace": lambda: metadata["namespace"],
        "metadata.uid": lambda: facts.uid,
        "spec.nodeName": lambda: facts.node,
        "spec.serviceAccountName": lambda: facts.manifest["spec"].get("serviceAccountName", "default"),
        "status.podIP": lambda: facts.address,
        "status.podIPs": lambda: facts.address,
        "status.hostIP": lambda: "127.0.0.1",
        "status.hostIPs": lambda: "127.0.0.1",
    }
    if path not in simple:
        raise NotPossible(f"fieldPath {path} is not supported on one machine; write the value itself")
    return simple[path]()


def _resource(reference: Manifest, container: Manifest) -> str:
    side, _, name = reference["resource"].partition(".")
    given = (limits(container) if side == "limits" else requests(container)).get(name) or 0
    divisor = parse_quantity(reference.get("divisor") or 0) or 1.0
    return str(math.ceil(parse_quantity(given) / divisor))


def config_maps(objects: tuple[Manifest, ...]) -> dict[str, dict[str, str]]:
    found = {}
    for one in objects:
        if one["kind"] == "ConfigMap":
            found[one["metadata"]["name"]] = _decoded(one.get("binaryData")) | (one.get("data") or {})
    return found


def secrets(objects: tuple[Manifest, ...]) -> dict[str, dict[str, str]]:
    found = {}
    for one in objects:
        if one["kind"] == "Secret":
            found[one["metadata"]["name"]] = _decoded(one.get("data")) | (one.get("stringData") or {})
    return found


def _decoded(encoded: Mapping[str, str] | None) -> dict[str, str]:
    """Bytes that are not text become the same bytes again in a file or in the environment of a program."""
    values = {key: base64.b64decode(value) for key, value in (encoded or {}).items()}
    return {key: value.decode(errors="surrogateescape") for key, value in values.items()}
