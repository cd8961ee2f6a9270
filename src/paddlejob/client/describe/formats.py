"""The machine-readable output formats: JSON and YAML, the way people write Kubernetes files."""

from __future__ import annotations

import json
from typing import Any

import yaml


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_multi_representer(dict, yaml.CSafeDumper.represent_dict)


def to_yaml(*objects: Any) -> str:
    """One YAML document per object."""
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
    return text


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def as_list(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Several objects as one, the way kubectl prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}
