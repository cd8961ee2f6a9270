"""`pdj code`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlejob.cli.options import Context, HiddenCluster, JobName, Namespace

if TYPE_CHECKING:
    from paddlejob.kube.client import Client


def command(
    name: JobName,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Directory to write the files to; it must be empty.", metavar="DIR")
    ],
    namespace: Namespace = "",
    cluster: HiddenCluster = False,
    context: Context = "",
) -> None:
    """Write the code that was submitted with a job to a directory.

    \b
    Example:
      pdj code train -n team -o code-of-train
    """
    from pathlib import Path

    from paddlejob.code.archive import unpack
    from paddlejob.errors import BadInput
    from paddlejob.targets.choose import cluster_target
    from paddlejob.targets.sync import SyncTarget

    folder = Path(output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"--output {output} is not an empty directory; choose another")
    target = cluster_target(context)
    where = namespace or target.default_namespace
    document = SyncTarget(target).job(where, name).document
    content = target.with_client(lambda client: _read(client, document))
    folder.mkdir(parents=True, exist_ok=True)
    typer.echo(f"wrote {unpack(content, folder)} files to {output}")


async def _read(client: Client, job: dict[str, Any]) -> bytes:
    """The archive of a job, checked against its digest."""
    import base64
    import hashlib

    from paddlejob import contract
    from paddlejob.code.shipping import config_map_names
    from paddlejob.errors import BadInput, NotFound, NotPossible
    from paddlejob.kube.resource import CONFIGMAPS

    metadata = job["metadata"]
    digest, _, parts = ((metadata.get("annotations") or {}).get(contract.ANNOTATION_CODE) or "").partition("/")
    if not digest or not parts.isdecimal():
        raise BadInput(f"job {metadata['name']} was submitted without --code; its code is in its image")
    content = b""
    for name in config_map_names(digest, int(parts)):
        try:
            found = await client.get(CONFIGMAPS, name, metadata["namespace"])
        except NotFound:
            raise NotPossible(f"ConfigMap {name} with the code of job {metadata['name']} is gone") from None
        content += b"".join(base64.b64decode(part) for _, part in sorted((found.get("binaryData") or {}).items()))
    if hashlib.sha256(content).hexdigest()[: len(digest)] != digest:
        raise NotPossible(f"the code of job {metadata['name']} was changed in the cluster; it is not written")
    return content
