"""Changing a job that exists: checked as the API server would, and noticed by whoever runs the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paddlejob.errors import BadInput, InvalidJob
from paddlejob.local.store import Document, JobFolder
from paddlejob.plan import times


def change_spec(folder: JobFolder, **fields: Any) -> Document:
    """Set fields of the spec; a mapping is merged into the one that is there."""

    def edit(document: Document) -> Document:
        spec = dict(document["spec"])
        for name, value in fields.items():
            spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
        return {**document, "spec": spec}

    return _change(folder, edit)


def mark_for_deletion(folder: JobFolder, now: float) -> None:
    with folder.changing():
        document = folder.document()
        if document and not document["metadata"].get("deletionTimestamp"):
            metadata = {**document["metadata"], "deletionTimestamp": times.format(now)}
            folder.write_document({**document, "metadata": metadata})


def _change(folder: JobFolder, edit: Callable[[Document], Document]) -> Document:
    from paddlejob.api.validate import change_faults, faults

    with folder.changing():
        before = folder.document()
        if before is None:
            raise BadInput(f"there is no job {folder.key[1]} in namespace {folder.key[0]}")
        after = edit(before)
        if after["spec"] == before["spec"]:
            return before
        found = faults(after) or change_faults(after, before)
        if found:
            raise InvalidJob(found, folder.key[1])
        metadata = {**before["metadata"], "generation": before["metadata"]["generation"] + 1}
        folder.write_document({**after, "metadata": metadata})
        return after
