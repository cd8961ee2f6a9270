"""Shipping code with a submitted job: the ConfigMaps are created once the job exists, which owns them."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from paddlejob.client.files import is_paddle_job
from paddlejob.client.start.submission import Submission
from paddlejob.code.archive import Archive, pack
from paddlejob.code.shipping import config_maps, owner_reference, with_code
from paddlejob.errors import AlreadyExists, ApiError, BadArgument, Conflict, NotFound, NotPossible, PaddleJobError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import CONFIGMAPS
from paddlejob.objects.resources import PADDLEJOBS

Object = dict[str, Any]
MOST_SHOWN = 8
TRIES = 5


@dataclass(frozen=True)
class Shipment:
    """The code of a submission."""

    archive: Archive
    directory: str

    @property
    def description(self) -> str:
        archive = self.archive
        kib = len(archive.content) / 1024
        left_out = ", ".join(archive.ignored[:MOST_SHOWN]) + (", ..." if len(archive.ignored) > MOST_SHOWN else "")
        ignored = f"; left out: {left_out}" if left_out else ""
        shipped = (
            f"code {archive.digest}: {len(archive.files)} files of {self.directory}, {kib:.1f} KiB packed{ignored}"
        )
        secret = ", ".join(archive.secret)
        note = f"\nleft out because it may be secret: {secret}; to ship it, write `!NAME` into .pdjignore"
        return shipped + (note if secret else "")


def ship(submission: Submission, directory: str, program: str = "") -> tuple[Submission, Shipment]:
    """The submission with pods that unpack the directory; the program must be one of its files."""
    archive = pack(directory)
    if program and os.path.normpath(program) not in archive.files:
        problem = f"does not ship {program}; name the program relative to it, and check .gitignore and .pdjignore"
        raise BadArgument("code", problem, directory)
    documents = tuple(with_code(one, archive) if is_paddle_job(one) else one for one in submission.documents)
    return Submission(documents), Shipment(archive, directory)


async def create_config_maps(client: Client, submission: Submission, archive: Archive) -> None:
    """For every job; if that fails or is interrupted, the jobs are deleted, because their pods would wait forever."""
    try:
        for namespace, name in submission.jobs:
            owner = owner_reference(await client.get(PADDLEJOBS, name, namespace))
            for document in config_maps(archive, namespace, owner):
                await create_or_share(client, document, owner)
    except asyncio.CancelledError:
        await _delete_jobs(client, submission)
        raise
    except PaddleJobError as error:
        await _delete_jobs(client, submission)
        raise NotPossible(
            f"the code cannot be stored in a ConfigMap, so nothing was submitted; ask for permission to create "
            f"ConfigMaps, or build an image with the code: {error}"
        ) from error


async def create_or_share(client: Client, document: Object, owner: Object) -> None:
    """A job with the same code may have created it already; then it gets one more owner."""
    namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
    for _ in range(TRIES):
        try:
            await client.create(CONFIGMAPS, document)
            return
        except AlreadyExists:
            pass
        try:
            await _add_owner(client, document, owner)
            return
        except (Conflict, NotFound):
            continue
    raise NotPossible(f"ConfigMap {name} in namespace {namespace} changes all the time; try again")


async def _add_owner(client: Client, document: Object, owner: Object) -> None:
    """Share only what has the same content: anybody may have created a ConfigMap of this name."""
    namespace, name = document["metadata"]["namespace"], document["metadata"]["name"]
    found = await client.get(CONFIGMAPS, name, namespace)
    metadata = found["metadata"]
    if (found.get("binaryData"), found.get("data") or {}) != (document.get("binaryData"), {}):
        raise NotPossible(f"ConfigMap {name} in namespace {namespace} exists and holds something else; delete it")
    owners = metadata.get("ownerReferences") or []
    if metadata.get("deletionTimestamp"):
        raise NotPossible(f"ConfigMap {name} is being deleted; try again")
    if any(one["uid"] == owner["uid"] for one in owners):
        return
    changes = {"metadata": {"ownerReferences": [*owners, owner], "resourceVersion": metadata["resourceVersion"]}}
    await client.patch(CONFIGMAPS, name, namespace, changes)


async def _delete_jobs(client: Client, submission: Submission) -> None:
    for namespace, name in submission.jobs:
        with suppress(ApiError):
            await client.delete(PADDLEJOBS, name, namespace, propagation="Background")
