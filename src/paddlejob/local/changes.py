"""Changing a job that exists: checked as the API server would, and noticed by whoever runs the job."""

from __future__ import annotations

from typing import Any

from paddlejob.errors import BadInput
from paddlejob.local.store import Document, JobFolder
from paddlejob.plan import times


def change_spec(folder: JobFolder, **fields: Any) -> Document:
    """Set fields of the spec; a mapping is merged into the existing one."""
    # Validation takes a while to import, and an engine that only runs jobs never needs it.
    from paddlejob.api.change import with_fields

    with folder.changing():
        before = folder.document()
        if before is None:
            raise BadInput(f"there is no job {folder.key[1]} in namespace {folder.key[0]}")
        after = with_fields(before, fields)
        if after is not before:
            metadata = {**before["metadata"], "generation": before["metadata"]["generation"] + 1}
            folder.write_document({**after, "metadata": metadata})
        return after


def mark_for_deletion(folder: JobFolder, now: float) -> None:
    with folder.changing():
        document = folder.document()
        if document and not document["metadata"].get("deletionTimestamp"):
            metadata = {**document["metadata"], "deletionTimestamp": times.format(now)}
            folder.write_document({**document, "metadata": metadata})
