"""Changes to a stored job, checked as the API server would; the runner of the job notices them."""

from __future__ import annotations

from typing import Any

from paddlejob.errors import BadInput
from paddlejob.local.state.store import Document, JobFolder
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
            _write_metadata(folder, document, deletionTimestamp=times.format(now))


def remove_finalizer(folder: JobFolder, name: str) -> None:
    with folder.changing():
        document = folder.document()
        if document:
            kept = [one for one in document["metadata"].get("finalizers") or [] if one != name]
            _write_metadata(folder, document, finalizers=kept)


def _write_metadata(folder: JobFolder, document: Document, **changes: Any) -> None:
    folder.write_document({**document, "metadata": {**document["metadata"], **changes}})
