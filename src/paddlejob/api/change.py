"""Changing the spec of a job that exists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlejob.api.validate import change_faults, faults
from paddlejob.errors import InvalidJob

Document = dict[str, Any]


def with_fields(document: Document, fields: Mapping[str, Any]) -> Document:
    """Set fields of the spec, merging mappings, and check the result as the API server would.

    Returns `document` itself when nothing changes; raises InvalidJob when the change is not allowed.
    """
    spec = dict(document["spec"])
    for name, value in fields.items():
        spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
    if spec == document["spec"]:
        return document
    after = {**document, "spec": spec}
    # Faults that the stored job already has do not forbid a change: an older version accepted it.
    if found := [fault for fault in faults(after) if fault not in faults(document)] or change_faults(after, document):
        raise InvalidJob(found, document["metadata"]["name"])
    return after
