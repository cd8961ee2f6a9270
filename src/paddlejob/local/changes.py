"""Changes to a stored job, checked as the API server would; the runner of the job notices them."""

from __future__ import annotations

from typing import Any

from paddlejob.errors import BadInput, InvalidJob
from paddlejob.local.store import Document, JobFolder
from paddlejob.plan import times


def change_spec(folder: JobFolder, **fields: Any) -> Document:
    """Set fields of the spec; a mapping is merged into the one that is there."""
    from paddlejob.api.validate import change_faults, faults

    with folder.changing():
        before = folder.document()
        if before is None:
            raise BadInput(f"there is no job {folder.key[1]} in namespace {folder.key[0]}")
        after = {**before, "spec": _merged(before["spec"], fields)}
        if after["spec"] == before["spec"]:
            return before
        found = faults(after) or change_faults(after, before)
        if found:
            raise InvalidJob(found, folder.key[1])
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


def _merged(spec: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    merged = dict(spec)
    for name, value in fields.items():
        merged[name] = {**merged.get(name, {}), **value} if isinstance(value, dict) else value
    return merged


def _write_metadata(folder: JobFolder, document: Document, **changes: Any) -> None:
    folder.write_document({**document, "metadata": {**document["metadata"], **changes}})
