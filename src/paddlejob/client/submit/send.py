"""Sending a submission to a cluster: its objects, then the code of its jobs."""

from __future__ import annotations

from paddlejob.client.submit.apply import apply
from paddlejob.client.submit.code import Shipment, create_config_maps
from paddlejob.client.submit.submission import Submission
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.kube.client import Client


def send(target: ClusterTarget, submission: Submission, shipment: Shipment | None) -> list[str]:
    """Returns one line for each object. If the code cannot be stored, the jobs are deleted again."""

    async def send_all(client: Client) -> list[str]:
        lines = await apply(client, submission, target)
        if shipment is None:
            return lines
        await create_config_maps(client, submission, shipment.archive)
        return [*lines, shipment.description]

    return target.with_client(send_all)
