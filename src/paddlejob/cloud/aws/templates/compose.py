"""Templates from their YAML parts: a template is a base, and a part for each zone and for each optional feature."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import yaml

OWNER_TAG = "paddlejob/cluster"
CONTROL_PLANE, NODE, ADD_ON, JOB = "control-plane", "worker/node", "worker/add-on", "worker/job"
ROLE_KINDS = {
    "ClusterRole": CONTROL_PLANE,
    "NodeRole": NODE,
    "NetworkRole": ADD_ON,
    "DriverRole": ADD_ON,
    "JobRole": JOB,
}
"""The kinds of roles, with which their IAM paths end: CloudFormation chooses names, so policies go by the path."""
Parameters = dict[str, str]
Part = dict[str, Any]
_NUMBERS = ("WorkerCount", "MaxWorkerCount", "DiskSize")
_TYPES = {"ApiAccessCidrs": "CommaDelimitedList", **dict.fromkeys(_NUMBERS, "Number")}


@dataclass(frozen=True)
class Template:
    """A template as text, the parameters that it declares, and the name of its file in the assets directory."""

    file: str
    text: str
    parameters: Parameters


def compose(file: str, values: Parameters, parts: list[Part]) -> Template:
    """Merge the parts. Parameters are the values that the result refers to; the stack remembers them."""
    merged: Part = functools.reduce(_merge, parts, {})
    for name, kind in ROLE_KINDS.items():
        if name in merged["Resources"]:
            merged["Resources"][name]["Properties"] |= _limits(kind, values)
    text = json.dumps(merged)
    used = {name: value for name, value in values.items() if f'"Ref": "{name}"' in text}
    declared = {name: {"Type": _TYPES.get(name, "String"), "Default": value} for name, value in used.items()}
    ordered = {"AWSTemplateFormatVersion": "2010-09-09", "Description": "", "Parameters": declared, **merged}
    return Template(file, yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, width=120), used)


def role_path(cluster: str) -> str:
    return f"/paddlejob/{cluster}/"


def _limits(kind: str, values: Parameters) -> Part:
    """The boundary, if the account has one, and the path, which a role that was created without one can't get."""
    boundary = {"PermissionsBoundary": {"Ref": "BoundaryArn"}} if values.get("BoundaryArn") else {}
    path = {"Path": {"Fn::Join": ["", [{"Ref": "RolePath"}, f"{kind}/"]]}} if values.get("RolePath") else {}
    return boundary | path


def part(name: str, **values: object) -> Part:
    """Return a part with each @Name@ replaced."""
    text = _texts()[name]
    for key, value in values.items():
        text = text.replace(f"@{key}@", str(value))
    loaded: Part = yaml.load(text, Loader=_Loader)
    del loaded["Part"]
    return loaded


@functools.cache
def _texts() -> dict[str, str]:
    """Map the name of each part to its text."""
    folder = files(__package__)
    names = ("network", "control_plane", "nodes", "data")
    texts = [text for name in names for text in folder.joinpath(f"{name}.yaml").read_text("utf-8").split("\n---\n")]
    return {text.partition("Part: ")[2].partition("\n")[0]: text for text in texts}


def _merge(base: Any, addition: Any) -> Any:
    """Merge mappings and join lists; of two scalars, the second wins."""
    if isinstance(base, list):
        return [*base, *addition]
    if not isinstance(base, dict):
        return addition
    return {**base, **{key: _merge(base[key], value) if key in base else value for key, value in addition.items()}}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads the short form of CloudFormation's functions, such as !Ref."""


def _function(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        text = loader.construct_scalar(node)
        return {"Fn::GetAtt": str(text).split(".")} if name == "GetAtt" else {_long_form(name): text}
    return {_long_form(name): loader.construct_sequence(node, deep=True)}  # type: ignore[arg-type]


def _long_form(name: str) -> str:
    return name if name == "Ref" else f"Fn::{name}"


_Loader.add_multi_constructor("!", _function)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        """CloudFormation does not support aliases of YAML."""
        return True
