"""The ConfigMaps and Secrets of a job file: values that the API server rejects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from paddlejob.api.fault import Fault
from paddlejob.api.rules import Obj

KEY = re.compile(r"(?!\.\.?$)[-._a-zA-Z0-9]{1,253}")
BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
FIELDS = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData")}
ENCODED = {"ConfigMap": "binaryData", "Secret": "data"}
PLAIN = {"ConfigMap": "data", "Secret": "stringData"}


def check_object(obj: Obj) -> Iterator[Fault]:
    """The faults of an object beside the jobs of a file. Their messages name it: a file may have many."""
    kind, name = str(obj.get("kind") or ""), (obj.get("metadata") or {}).get("name")
    fields = {("apiVersion",): obj.get("apiVersion"), ("kind",): kind, ("metadata", "name"): name}
    if missing := [path for path, value in fields.items() if not value or not isinstance(value, str)]:
        yield from (Fault(path, f"is missing in {f'a {kind}' if kind else 'a document'}; add it") for path in missing)
        return
    for field in FIELDS.get(kind, ()):
        values = obj.get(field)
        if values is not None and not isinstance(values, dict):
            yield Fault((field,), f"of {kind} {name} is not a mapping; write one `key: value` per line")
        for key, value in values.items() if isinstance(values, dict) else ():
            if message := _problem(kind, field, key, value):
                yield Fault((field, str(key)), f"{message} ({kind} {name})")


def _problem(kind: str, field: str, key: Any, value: Any) -> str:
    if not isinstance(key, str):
        return f'keys are strings; write "{_spelled(key)}" in quotes'
    if not isinstance(value, str):
        return f'values are strings; write "{_spelled(value)}" in quotes'
    if not KEY.fullmatch(key):
        return f"{key!r} is not a valid key; use letters, digits, '-', '_' and '.'"
    if field == ENCODED[kind] and not BASE64.fullmatch(value):
        return f"is not base64; encode it, or write it as it is under {PLAIN[kind]}"
    return ""


def _spelled(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
