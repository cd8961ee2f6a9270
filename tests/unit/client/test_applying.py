"""Applying what is submitted to a cluster: in which order and namespace, and how a rejection is reported."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.client.start.apply import apply
from paddlejob.client.start.check import check
from paddlejob.client.start.load import Loaded
from paddlejob.client.start.submission import Submission, submission_of
from paddlejob.errors import NotPossible
from paddlejob.kube.client import Client
from paddlejob.targets.cluster.cluster_target import ClusterTarget
from tests.support.builders import document
from tests.support.scripted_cluster import Object, ScriptedCluster, failure

KINDS = {"PaddleJob": "paddlejobs", "ConfigMap": "configmaps", "Secret": "secrets", "Namespace": "namespaces"}
CLUSTER_SCOPED = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume", "ClusterRole",
    "ClusterRoleBinding", "Queue",
)  # fmt: skip
ORDER = (
    "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume",
    "PersistentVolumeClaim", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap",
    "Secret", "Service", "Queue", "PodGroup", "Gadget", "PaddleJob",
)  # fmt: skip


def an(kind: str, name: str = "one", **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def a_job(name: str = "mnist", **metadata: Any) -> Object:
    made = document(name)
    made["metadata"] = {"name": name, **metadata}
    return made


def submission(*documents: Object) -> Submission:
    return submission_of(check([Loaded("job.yaml", documents).in_namespace("team")], cluster=None))


def test_objects_are_applied_before_those_that_refer_to_them_and_jobs_last():
    made = submission(a_job(), *(an(kind) for kind in reversed(ORDER[:-1])))
    assert [one["kind"] for one in made.documents] == [*ORDER]


def test_the_namespace_of_the_command_is_set_where_an_object_has_one_and_names_none():
    made = submission(a_job(), an("Secret", namespace="own"), *(an(kind) for kind in CLUSTER_SCOPED))
    placed = {one["kind"]: one["metadata"].get("namespace") for one in made.documents}
    assert placed == {"PaddleJob": "team", "Secret": "own", **dict.fromkeys(CLUSTER_SCOPED)}
    assert made.jobs == [("team", "mnist")]
    assert Loaded("job.yaml", (a_job(),)).in_namespace("").objects == (a_job(),)


def test_two_objects_of_one_name_may_be_of_different_kinds_or_namespaces():
    assert len(submission(a_job(), an("Secret", "mnist"), a_job(namespace="b")).documents) == 3


@pytest.fixture
async def api() -> ScriptedCluster:
    made = ScriptedCluster()
    made.kinds = [
        {"name": plural, "kind": kind, "namespaced": kind != "Namespace"} for kind, plural in KINDS.items()
    ] + [{"name": "paddlejobs/status", "kind": "PaddleJob", "namespaced": True}]
    return made


async def test_each_object_is_tried_before_the_first_is_stored(
    api: ScriptedCluster, client: Client, target: ClusterTarget
):
    lines = await apply(client, submission(an("Secret"), a_job()), target)
    assert lines == ["Secret one in namespace team: created", "job mnist in namespace team: created"]
    assert api.tried == ["one", "mnist"]
    assert [(one.method, one.path) for one in api.asked] == [
        ("PATCH", "team/secrets/one"), ("POST", "team/paddlejobs")
    ]  # fmt: skip
    assert next(query for path, query in api.queries if path == "team/secrets/one" and query)["fieldManager"] == (
        "pdj-submit"
    )


async def test_an_object_that_exists_is_unchanged_or_configured(
    api: ScriptedCluster, client: Client, target: ClusterTarget
):
    api.put("team/secrets/one", an("Secret", namespace="team", managedFields=[{"manager": "x"}]))
    same = an("Secret", namespace="team")
    assert await apply(client, submission(same), target) == ["Secret one in namespace team: unchanged"]
    changed = {**same, "data": {"a": "eA=="}}
    assert await apply(client, submission(changed), target) == ["Secret one in namespace team: configured"]


async def test_a_job_that_exists_is_rejected_with_the_commands_that_help_and_nothing_is_stored(
    api: ScriptedCluster, client: Client, target: ClusterTarget
):
    api.put("team/paddlejobs/mnist", a_job(namespace="team"))
    api.answers["PATCH", "team/secrets/one"] = failure(422, "Invalid", "data: too long")
    with pytest.raises(NotPossible) as raised:
        await apply(client, submission(an("Secret"), a_job()), target)
    assert str(raised.value).splitlines() == [
        "Secret one in namespace team: apply /api/v1/namespaces/team/secrets/one: data: too long",
        "job mnist in namespace team already exists (`pdj get mnist --cluster -n team`); choose another name, "
        "or delete it and its logs first (`pdj delete mnist --cluster -n team`)",
    ]
    assert api.objects.keys() == {"team/paddlejobs/mnist"}


async def test_a_namespace_that_does_not_exist_is_named_unless_it_is_part_of_the_submission(
    api: ScriptedCluster, client: Client, target: ClusterTarget
):
    api.answers["POST", "team/paddlejobs"] = failure(404, "NotFound", "namespaces team not found")
    with pytest.raises(NotPossible, match="create it with `kubectl create namespace team`"):
        await apply(client, submission(a_job()), target)
    api.answers.clear()
    lines = await apply(client, submission(an("Namespace", "team"), a_job()), target)
    assert lines == ["Namespace team: created", "job mnist in namespace team: created"]
    assert api.tried == ["team"], "a job cannot be tried in a namespace that does not exist yet"


async def test_kinds_that_the_cluster_does_not_have_are_listed_with_a_remedy(
    api: ScriptedCluster, client: Client, target: ClusterTarget
):
    with pytest.raises(NotPossible) as raised:
        await apply(client, submission(an("Gadget"), an("PodGroup"), an("Queue"), a_job()), target)
    assert str(raised.value).splitlines() == [
        "Queue one: the cluster has no Queue in v1; install Volcano, or remove the Queue",
        "PodGroup one: the cluster has no PodGroup in v1; install Volcano, or remove the PodGroup",
        "Gadget one: the cluster has no Gadget in v1; check apiVersion and kind",
    ]
    api.kinds = []
    with pytest.raises(NotPossible, match="pdj install"):
        await apply(client, submission(a_job()), target)
    assert api.asked == []


async def test_what_may_not_be_read_may_be_written(api: ScriptedCluster, client: Client, target: ClusterTarget):
    api.answers["GET", "team/secrets/one"] = failure(403, "Forbidden")
    assert await apply(client, submission(an("Secret")), target) == ["Secret one in namespace team: created"]
