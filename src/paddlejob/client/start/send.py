"""Sending a submission to a cluster: its objects, then the code of its jobs."""

from __future__ import annotations

from paddlejob.client.start.apply import apply
from paddlejob.client.start.shipment import Shipment, create_config_maps
from paddlejob.client.start.submission import Submission
from paddlejob.errors import KubeError
from paddlejob.kube.client import Client
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from paddlejob.targets.cluster.operators import find_operators, unavailable_message, unwatched_message


def send(target: ClusterTarget, submission: Submission, shipment: Shipment | None) -> list[str]:
    """Returns one line for each object. If the code cannot be stored, the jobs are deleted again."""

    async def send_all(client: Client) -> list[str]:
        lines = await apply(client, submission, target)
        if shipment is None:
            return lines
        await create_config_maps(client, submission, shipment.archive)
        return [*lines, shipment.description]

    return target.with_client(send_all)


def operator_warnings(target: ClusterTarget, submission: Submission) -> list[str]:
    """Why no operator starts the jobs that were sent, for each namespace in which none does.

    The jobs exist by now, so a cluster that does not answer here is no error.
    """
    try:
        operators = target.with_client(find_operators)
    except KubeError:
        return []
    namespaces = dict.fromkeys(namespace for namespace, _ in submission.jobs)
    found = (
        unwatched_message(operators, one, target.context_flag) or unavailable_message(operators, one)
        for one in namespaces
    )
    return [message for message in found if message]
