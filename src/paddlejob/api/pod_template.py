"""The schema of a pod template, generated from Kubernetes' OpenAPI document by tools/pod_template_schema.py."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def pod_template_schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((files(__package__) / "pod_template.json").read_bytes())
    return schema
