"""Reading, checking and applying what is submitted to a cluster, and the code that is shipped with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.client.given import Given
from paddlejob.client.submit import code
from paddlejob.client.submit.apply import apply
from paddlejob.client.submit.code import Shipment, create_config_maps, create_or_share, ship
from paddlejob.client.submit.submission import CLUSTER_SCOPED, ORDER, Submission, read_submission
from paddlejob.client.targets.cluster import ClusterTarget
from paddlejob.code.archive import Archive
from paddlejob.errors import BadInput, InvalidJob, NotPossible
from paddlejob.kube.client import Client
from tests.support.builders import document
from tests.support.scripted_api import Object, failure
from tests.support.scripted_cluster import ScriptedCluster

KINDS = {"PaddleJob": "paddlejobs", "ConfigMap": "configmaps", "Secret": "secrets", "Namespace": "namespaces"}


def an(kind: str, name: str = "one", **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def a_job(name: str = "mnist", **metadata: Any) -> Object:
    made = document(name)
    made["metadata"] = {"name": name, **metadata}
    return made


def given(*files: list[Object]) -> Given:
    return Given([f"{number}.yaml" for number in range(len(files))], lambda name: files[int(name.split(".")[0])])


def errors_of(*files: list[Object], namespace: str = "") -> list[str]:
    with pytest.raises(InvalidJob) as raised:
        read_submission(given(*files), namespace)
    return raised.value.faults


def test_objects_are_applied_before_those_that_refer_to_them_and_jobs_last():
    kinds = [*reversed(ORDER), "Gadget"]
    read = read_submission(given([a_job(), *(an(kind) for kind in kinds)]))
    assert [one["kind"] for one in read.documents] == [*ORDER, "Gadget", "PaddleJob"]
    assert ORDER.index("Namespace") == 0
    assert ORDER.index("ServiceAccount") < ORDER.index("RoleBinding")
    assert ORDER.index("PersistentVolume") < ORDER.index("PersistentVolumeClaim")
    assert set(ORDER) >= set(CLUSTER_SCOPED) | {"ConfigMap", "Secret", "Service", "Role", "PodGroup"}


def test_the_namespace_of_the_command_is_set_where_an_object_has_one_and_names_none():
    read = read_submission(given([a_job(), an("Secret", namespace="own"), *(an(kind) for kind in CLUSTER_SCOPED)]))
    placed = {one["kind"]: one["metadata"].get("namespace") for one in read.in_namespace("team").documents}
    assert placed == {"PaddleJob": "team", "Secret": "own", **dict.fromkeys(CLUSTER_SCOPED)}
    assert read.in_namespace("team").jobs == [("team", "mnist")]
    assert read.jobs == [("default", "mnist")]
    assert set(CLUSTER_SCOPED) == {
        "Namespace", "CustomResourceDefinition", "StorageClass", "PriorityClass", "PersistentVolume", "ClusterRole",
        "ClusterRoleBinding", "Queue",
    }  # fmt: skip


def test_the_errors_of_all_files_come_at_once():
    found = errors_of([an("Secret")], [a_job(), {"kind": "Secret"}], [a_job("Bad_Name")], [an("PaddelJob")])
    assert found[0].startswith("0.yaml: contains no PaddleJob, only Secret; check kind and apiVersion")
    assert found[1:3] == ["1.yaml: apiVersion: is missing; add it", "1.yaml: Secret: metadata.name: is missing; add it"]
    assert found[3].startswith("2.yaml: metadata.name: ")
    assert found[-1] == "3.yaml: contains no PaddleJob, only PaddelJob; did you mean kind: PaddleJob?"
    nameless: Object = {"metadata": {"name": 7}}
    assert errors_of([a_job(), nameless]) == [
        "0.yaml: apiVersion: is missing; add it",
        "0.yaml: kind: is missing; add it",
        "0.yaml: a document: metadata.name: is missing; add it",
    ]


def test_a_file_that_cannot_be_read_does_not_hide_the_errors_of_others():
    def load(name: str) -> list[Object]:
        if name == "absent":
            raise BadInput("absent: no such file")
        return [a_job("Bad_Name")]

    with pytest.raises(InvalidJob) as raised:
        read_submission(Given(["absent", "x"], load))
    assert raised.value.faults[0] == "absent: no such file"
    assert raised.value.faults[1].startswith("x: metadata.name: ")


def test_a_job_of_kubeflow_names_the_command_that_converts_it():
    kubeflow = {"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "metadata": {"name": "a"}, "spec": {}}
    (found,) = errors_of([kubeflow])
    assert "convert it with `pdj convert 0.yaml -o converted.yaml`" in found


def test_an_object_of_another_namespace_than_the_commands_is_an_error():
    assert errors_of([a_job(namespace="own"), an("Secret", namespace="own")], namespace="team") == [
        f"0.yaml: {title} is in namespace own, not team; change metadata.namespace or -n"
        for title in ("PaddleJob mnist", "Secret one")
    ]
    assert read_submission(given([a_job(namespace="team")]), "team").jobs == [("team", "mnist")]


def test_two_objects_of_one_name_are_an_error_unless_their_namespaces_differ():
    assert errors_of([a_job()], [a_job()]) == ["PaddleJob mnist is defined 2 times; rename the duplicates"]
    assert errors_of([a_job(), an("Secret"), an("Secret")]) == ["Secret one is defined 2 times; rename the duplicates"]
    assert errors_of([a_job(), a_job(namespace="team")], namespace="team") == [
        "PaddleJob mnist is defined 2 times; rename the duplicates"
    ]
    apart = [a_job(), an("Secret", "mnist"), a_job(namespace="b")]
    assert len(read_submission(given(apart)).documents) == 3


def test_warnings_about_a_job_are_kept_and_do_not_stop_it():
    warned = a_job()
    warned["spec"]["worker"]["template"]["spec"]["containers"][0]["command"] = ["python train.py"]
    read = read_submission(given([warned, an("Secret")]))
    assert read.warnings and all(one.startswith("0.yaml: ") for one in read.warnings)
    assert read.in_namespace("team").warnings == read.warnings
    assert read_submission(given([a_job()])).warnings == ()


@pytest.fixture
async def api() -> ScriptedCluster:
    made = ScriptedCluster()
    made.kinds = [
        {"name": plural, "kind": kind, "namespaced": kind != "Namespace"} for kind, plural in KINDS.items()
    ] + [{"name": "paddlejobs/status", "kind": "PaddleJob", "namespaced": True}]
    return made


def submission(*documents: Object) -> Submission:
    return Submission(tuple(documents)).in_namespace("team")


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
        "job mnist in namespace team already exists (`pdj get mnist --cluster -n team`); delete it first "
        "(`pdj delete mnist --cluster -n team`) or choose another name",
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
        "Gadget one: the cluster has no Gadget in v1; check apiVersion and kind",
        "PodGroup one: the cluster has no PodGroup in v1; install Volcano, or remove the PodGroup",
        "Queue one: the cluster has no Queue in v1; install Volcano, or remove the Queue",
    ]
    api.kinds = []
    with pytest.raises(NotPossible, match="pdj install"):
        await apply(client, submission(a_job()), target)
    assert api.asked == []


async def test_what_may_not_be_read_may_be_written(api: ScriptedCluster, client: Client, target: ClusterTarget):
    api.answers["GET", "team/secrets/one"] = failure(403, "Forbidden")
    assert await apply(client, submission(an("Secret")), target) == ["Secret one in namespace team: created"]


OWNER = {"uid": "uid-of-mnist", "name": "mnist"}


def config_map(**metadata: Any) -> Object:
    return an("ConfigMap", "code-1-0", **{"namespace": "team", "labels": {contract.LABEL_CODE: "1"}, **metadata})


async def test_code_that_another_job_has_stored_gets_one_more_owner(api: ScriptedCluster, client: Client):
    path = "team/configmaps/code-1-0"
    api.put(path, config_map(ownerReferences=[{"uid": "of-another"}]))
    await create_or_share(client, config_map(ownerReferences=[OWNER]), OWNER)
    assert [one["uid"] for one in api.objects[path]["metadata"]["ownerReferences"]] == ["of-another", "uid-of-mnist"]
    (patched,) = api.written("PATCH")
    assert patched.body["metadata"]["resourceVersion"], "so that another owner is not lost"
    await create_or_share(client, config_map(ownerReferences=[OWNER]), OWNER)
    assert len(api.written("PATCH")) == 1, "it is an owner already"


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"labels": {}}, "ConfigMap code-1-0 exists and holds something else; delete or rename it"),
        ({"deletionTimestamp": "2027-01-15T08:00:00Z"}, "ConfigMap code-1-0 is being deleted; try again"),
    ],
)
async def test_a_config_map_that_cannot_be_shared_is_one_message(
    api: ScriptedCluster, client: Client, metadata: dict[str, Any], message: str
):
    api.put("team/configmaps/code-1-0", config_map(**metadata))
    with pytest.raises(NotPossible, match=message):
        await create_or_share(client, config_map(), OWNER)


async def test_a_config_map_that_changes_meanwhile_is_tried_again_for_a_while(api: ScriptedCluster, client: Client):
    path = "team/configmaps/code-1-0"
    api.put(path, config_map())
    answers = iter([failure(409, "Conflict"), failure(404, "NotFound")])
    api.answers["PATCH", path] = lambda body: next(answers, (200, body))
    await create_or_share(client, config_map(), OWNER)
    assert len(api.written("PATCH")) == 3
    api.answers["PATCH", path] = failure(409, "Conflict")
    with pytest.raises(NotPossible, match="code-1-0 in namespace team changes all the time; try again"):
        await create_or_share(client, config_map(), OWNER)


async def test_if_the_code_cannot_be_stored_no_job_is_left_behind(api: ScriptedCluster, client: Client):
    api.put("team/paddlejobs/mnist", a_job(namespace="team"))
    api.answers["POST", "team/configmaps"] = failure(403, "Forbidden", "no ConfigMaps for you")
    sent = submission(a_job(), a_job("gone"))
    with pytest.raises(NotPossible, match=r"so nothing was submitted; ask for permission .*no ConfigMaps for you"):
        await create_config_maps(client, sent, Archive(b"x", ("train.py",), ()))
    deleted = api.written("DELETE")
    assert [one.path for one in deleted] == ["team/paddlejobs/mnist", "team/paddlejobs/gone"]
    assert {one.body["propagationPolicy"] for one in deleted} == {"Background"}


def test_what_is_shipped_is_described(tmp_path: Path):
    assert Shipment(Archive(b"x" * 1536, ("a", "b"), ()), "src").description.endswith(
        ": 2 files of src, 1.5 KiB packed"
    )
    ignored = tuple(f"i{number}" for number in range(code.MOST_SHOWN + 1))
    few = Shipment(Archive(b"", ("a",), ignored[:-1]), "src").description
    assert few.endswith(f"; left out: {', '.join(ignored[:-1])}")
    many = Shipment(Archive(b"", ("a",), ignored), "src").description
    assert many.endswith(f"; left out: {', '.join(ignored[:-1])}, ...")


def test_only_jobs_get_the_code_and_the_program_is_part_of_it(tmp_path: Path):
    (tmp_path / "train.py").write_text("")
    read = Submission((an("Secret"), a_job()), ("a warning",))
    shipped, shipment = ship(read, str(tmp_path), "train.py")
    assert shipped.warnings == ("a warning",)
    assert shipped.documents[0] == an("Secret")
    assert contract.ANNOTATION_CODE in shipped.documents[1]["metadata"]["annotations"]
    assert (shipment.archive.files, shipment.directory) == (("train.py",), str(tmp_path))
    assert ship(read, str(tmp_path))[1] == shipment, "a job file names no program"
    with pytest.raises(BadInput, match=r"main\.py: is not shipped with --code .*check \.gitignore and \.pdjignore"):
        ship(read, str(tmp_path), "main.py")
