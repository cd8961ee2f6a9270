"""Sending a submission to a cluster: its objects, then the code of its jobs."""

from __future__ import annotations

from paddlejob.client.submit.apply import apply
from paddlejob.client.submit.code import Shipment, create_config_maps
from paddlejob.client.submit.submission import Submission
from paddlejob.client.targets.cluster import ClusterTarget


def send(target: ClusterTarget, submission: Submission, shipment: Shipment | None) -> list[str]:
    """Returns one line for each object. If the code cannot be stored, the jobs are deleted again."""
    lines = target.with_client(lambda client: apply(client, submission, target))
    if shipment:
        archive = shipment.archive
        target.with_client(lambda client: create_config_maps(client, submission, archive))
        lines.append(shipment.description)
    return lines
