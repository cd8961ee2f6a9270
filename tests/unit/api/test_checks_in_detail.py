"""Where each finding about a job is, and what the checks of a file leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from paddlejob.api.checks.host_ports import node_problems
from paddlejob.api.checks.misplaced import METADATA_FIELDS, remedy
from paddlejob.api.checks.pods import NOT_IN_INIT, check_job, errors_of
from paddlejob.api.checks.references import missing_keys
from paddlejob.api.checks.variables import FIELDS
from paddlejob.api.documents import decode, documents
from paddlejob.api.fault import Fault, Severity, format_path, parse_fault
from paddlejob.api.program import (
    Overrides,
    job_name,
    job_of_program,
    overridden,
    python_file,
    python_module,
    shell_command,
)
from paddlejob.api.template import has_accelerator
from paddlejob.api.yaml_problem import FULL_WIDTH, MOST_SHOWN, full_width, show
from paddlejob.errors import BadFile
from tests.support.builders import document

POD = "spec.worker.template.spec"
CONTAINER = f"{POD}.containers[0]"


def job(container: dict[str, Any] | None = None, workers: int = 1, **pod: Any) -> dict[str, Any]:
    made = document(workers=workers)
    made["spec"]["worker"]["template"]["spec"] |= pod
    made["spec"]["worker"]["template"]["spec"]["containers"][0] |= container or {}
    return made


def found(made: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault.where, str(fault.severity)) for fault in check_job(made)]


VOLUME = [{"name": "v", "emptyDir": {}}]


@pytest.mark.parametrize(
    ("made", "where", "severity"),
    [
        (job({"command": [" "]}), f"{CONTAINER}.command[0]", "error"),
        (job({"command": ["a b"]}), f"{CONTAINER}.command[0]", "warning"),
        (job({"image": "‘x’"}), f"{CONTAINER}.image", "warning"),
        (job({"workingDir": "/x”"}), f"{CONTAINER}.workingDir", "warning"),
        (job({"args": ["a", "“b"]}), f"{CONTAINER}.args[1]", "warning"),
        (job({"resources": {"limits": {"gpus": 1}}}), f"{CONTAINER}.resources.limits.gpus", "error"),
        (job({"resources": {"requests": {"tpu": 1}}}), f"{CONTAINER}.resources.requests.tpu", "error"),
        (job({"env": [{"name": "a=b"}]}), f"{CONTAINER}.env[0].name", "error"),
        (job({"envFrom": [{}]}), f"{CONTAINER}.envFrom[0]", "error"),
        (job({"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "b"}}]}), f"{CONTAINER}.envFrom[0]",
         "error"),
        (job({"env": [{"name": "a", "valueFrom": {}}]}), f"{CONTAINER}.env[0].valueFrom", "error"),
        (job({"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]}),
         f"{CONTAINER}.env[0].valueFrom.fieldRef.fieldPath", "error"),
        (job({"env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}]}),
         f"{CONTAINER}.env[0].valueFrom.resourceFieldRef.resource", "error"),
        (job({"volumeMounts": [{"name": "w", "mountPath": "/a"}]}, volumes=VOLUME),
         f"{CONTAINER}.volumeMounts[0].name", "error"),
        (job({"volumeMounts": [{"name": "v", "mountPath": "/"}]}, volumes=VOLUME),
         f"{CONTAINER}.volumeMounts[0].mountPath", "error"),
        (job({"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "x", "subPathExpr": "y"}]}, volumes=VOLUME),
         f"{CONTAINER}.volumeMounts[0].subPathExpr", "error"),
        (job({"volumeMounts": [{"name": "v", "mountPath": "a"}]}, volumes=VOLUME),
         f"{CONTAINER}.volumeMounts[0].mountPath", "warning"),
        (job({"volumeMounts": [{"name": "v", "mountPath": "/a:b"}]}, volumes=VOLUME),
         f"{CONTAINER}.volumeMounts[0].mountPath", "warning"),
        (job(volumes=[*VOLUME, {"name": "w", "secret": {}, "nfs": {"server": "s", "path": "/"}}]),
         f"{POD}.volumes[1]", "error"),
        (job(volumes=[*VOLUME, *VOLUME]), f"{POD}.volumes", "error"),
        (job(volumes=[{"name": "v", "secret": {"secretName": "s", "items": [{"key": "k", "path": "/x"}]}}]),
         f"{POD}.volumes[0].secret.items[0].path", "error"),
        (job({"command": ["mpirun", "x"]}), f"{CONTAINER}.command[0]", "warning"),
        (job({"args": ["x", "mpiexec -n 2 y"]}), f"{CONTAINER}.args[1]", "warning"),
        (job({"env": [{"name": "A", "value": "b"}, {"name": "save_dir", "value": "/x"}]}, workers=2),
         f"{CONTAINER}.env[1]", "warning"),
        (job({"command": ["python", "--output-dir=/x"]}, workers=2), f"{CONTAINER}.command[1]", "warning"),
        (job({"args": ["--ckpt_path", "/x"]}, workers=2), f"{CONTAINER}.args[0]", "warning"),
    ],
)  # fmt: skip
def test_each_finding_is_reported_once_where_it_is(made: dict[str, Any], where: str, severity: str):
    assert found(made) == [(where, severity)]
    assert bool(errors_of(made)) == (severity == "error")


@pytest.mark.parametrize("field", NOT_IN_INIT)
def test_an_init_container_has_no_probes_and_hooks_unless_it_is_a_sidecar(field: str):
    value = {"preStop": {"exec": {"command": ["true"]}}} if field == "lifecycle" else {"exec": {"command": ["true"]}}
    init = {"name": "first", "image": "i", field: value}
    assert found(job(initContainers=[init])) == [(f"{POD}.initContainers[0].{field}", "error")]
    assert found(job(initContainers=[{**init, "restartPolicy": "Always"}])) == []
    assert found(job({field: value})) == []
    assert set(NOT_IN_INIT) == {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}


@pytest.mark.parametrize(
    "made",
    [
        job({"env": [{"name": "a", "value": "b"}, {"name": "c"}]}),
        job({"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x/y']"}}}]}),
        job({"env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory"}}}]}),
        job({"env": [{"name": "a", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}}]}),
        job({"envFrom": [{"prefix": "X_", "configMapRef": {"name": "a"}}]}),
        job({"resources": {"requests": {"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}}}),
        job({"resources": {"limits": {"a/b": 1}, "requests": {"a/b": 1}}}),
        job({"command": ["bash", "-c", "mpirun.sh && /opt/mpirun-x"]}),
        job({"command": ["python", "--output_dir", "out"]}, workers=2),
        job({"command": ["python", "--output_dir"]}, workers=2),
        job({"command": ["output_dir=/x"]}, workers=2),
        job({"command": ["python", "--output_dir", "/x"]}),
        job({"command": ["python", "--save=/m/x"], "volumeMounts": [{"name": "n", "mountPath": "/m/"}]}, workers=2,
            volumes=[{"name": "n", "nfs": {"server": "s", "path": "/"}}]),
    ],
)  # fmt: skip
def test_what_pods_may_have_is_accepted(made: dict[str, Any]):
    assert found(made) == []


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_that_a_variable_may_have_is_accepted(field: str):
    assert found(job({"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": field}}}]})) == []


@pytest.mark.parametrize("kind", ["emptyDir", "configMap", "secret", "downwardAPI", "projected", "ephemeral"])
def test_a_volume_that_each_pod_has_for_itself_keeps_no_checkpoint(kind: str):
    made = job({"args": ["--save_dir", "/m"], "volumeMounts": [{"name": "n", "mountPath": "/m"}]}, workers=2)
    made["spec"]["worker"]["template"]["spec"]["volumes"] = [{"name": "n", kind: {}}]
    assert (f"{CONTAINER}.args[0]", "warning") in found(made)


def test_only_workers_of_several_are_asked_where_they_save():
    made = document(ps=2, workers=2)
    made["spec"]["ps"]["template"]["spec"]["containers"][0]["args"] = ["--save_dir", "/m"]
    assert found(made) == []
    made["spec"]["ps"]["template"]["spec"]["containers"][0]["args"] = ["mpirun"]
    assert found(made) == [("spec.ps.template.spec.containers[0].args[0]", "warning")]
    with_heter = document(ps=1, workers=1, heter=1)
    with_heter["spec"]["heter"]["template"]["spec"]["containers"][0]["args"] = ["mpirun"]
    assert found(with_heter) == [("spec.heter.template.spec.containers[0].args[0]", "warning")]
    sidecar = job({"name": "side", "args": ["mpirun"]}, workers=2)
    sidecar["spec"]["worker"]["template"]["spec"]["containers"].append(
        {"name": "paddle", "image": "i", "args": ["mpiexec"]}
    )
    assert found(sidecar) == [(f"{POD}.containers[1].args[0]", "warning")]


def test_a_key_that_an_object_of_the_file_lacks_is_named_where_the_template_names_it():
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": ""}, "stringData": {"b": ""}}
    rates = {"kind": "ConfigMap", "metadata": {"name": "m"}, "binaryData": {"c": ""}}

    def missing(**source: Any) -> list[str]:
        made = job({"env": [{"name": "x", "value": ""}, {"name": "y", "valueFrom": source}]})
        return [str(fault) for fault in missing_keys(made, [secret, rates])]

    for key in "ab":
        assert missing(secretKeyRef={"name": "s", "key": key}) == []
    assert missing(configMapKeyRef={"name": "m", "key": "c"}) == []
    assert missing(configMapKeyRef={"name": "m", "key": "a"}) == [
        f"{CONTAINER}.env[1].valueFrom.configMapKeyRef.key: ConfigMap m has no key a; add it, or correct the key in "
        "the template"
    ]
    assert missing(secretKeyRef={"name": "s", "key": "c", "optional": True}) == []
    assert missing(secretKeyRef={"name": "elsewhere", "key": "c"}) == []
    items = {"items": [{"key": "a", "path": "a"}, {"key": "z", "path": "z"}]}
    mounted = job(volumes=[{"name": "v", "secret": {"secretName": "s", **items}}])
    assert [fault.where for fault in missing_keys(mounted, [secret])] == [f"{POD}.volumes[0].secret.items[1].key"]
    optional = job(volumes=[{"name": "v", "configMap": {"name": "m", "optional": True, **items}}])
    assert list(missing_keys(optional, [rates])) == []


@pytest.mark.parametrize("field", METADATA_FIELDS)
def test_a_field_of_the_metadata_belongs_there(field: str):
    if field not in ("name", "labels", "annotations"):
        assert remedy(("spec",), field) == (
            "it belongs in metadata; move it there and indent it below `metadata:`"
        )  # fmt: skip
    assert remedy(("metadata",), field).startswith("it belongs in") == (field in ("name",))


@pytest.mark.parametrize(
    ("path", "field", "where"),
    [
        (("spec", "worker"), "cleanPodPolicy", "it belongs in spec, beside worker; indent it less"),
        (("spec", "worker", "template", "spec"), "replicas",
         "it belongs in spec.worker, beside template; indent it less"),
        (("spec",), "kind", "it belongs in the top level; indent it less"),
        (("spec", "ps"), "containers",
         "it belongs in spec.ps.template.spec; move it there and indent it below `spec:`"),
        (("spec", "ps", "template", "spec"), "image",
         "it belongs in spec.ps.template.spec.containers[0]; move it there and indent it below `containers:`"),
        (("spec", "worker", "template", "spec", "containers", 2), "limits",
         "it belongs in spec.worker.template.spec.containers[2].resources; move it there and indent it below "
         "`resources:`"),
        (("spec", "worker"), "nonsense", ""),
        (("spec",), "worker", ""),
    ],
)  # fmt: skip
def test_an_unknown_field_is_shown_where_it_belongs(path: tuple[str | int, ...], field: str, where: str):
    assert remedy(path, field) == where


def pods(kind: str = "PaddleJob", host_network: bool = False, ports: Any = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "paddle", "ports": ports or [{"containerPort": 1, "hostPort": 2379}]}
    template = {"spec": {"containers": [container], "hostNetwork": host_network}}
    roles = {role: {"replicas": spec.pop(role), "template": template} for role in ("ps", "worker") if role in spec}
    return {"kind": kind, "metadata": {"name": "mnist"}, "spec": {**spec, **(roles or {"template": template})}}


def test_a_job_whose_pods_share_a_host_port_needs_a_node_for_each():
    assert node_problems([pods(ps=1, worker=2)], 3) == []
    assert node_problems([pods(ps=1, worker=2)], 2) == [
        "job mnist: 3 pods use host port 2379/TCP, which needs a node for each, and workerCount is 2; set workerCount "
        "to at least 3"
    ]
    assert node_problems([pods("Job", parallelism=3, completions=2)], 2) == []
    assert node_problems([pods("Job", parallelism=3)], 2) != []
    assert node_problems([pods("Job", parallelism=3, completions=5)], 2) != []
    assert (
        node_problems([pods("Job")], 1) == node_problems([pods("Secret")], 0) == node_problems(["text", None], 0) == []
    )
    plain = [{"containerPort": 8080}]
    assert node_problems([pods(worker=2, ports=plain)], 1) == []
    (found_port,) = node_problems([pods(worker=2, ports=[{**plain[0], "protocol": "UDP"}], host_network=True)], 1)
    assert "8080/UDP" in found_port
    nameless = {**pods(worker=2), "metadata": None}
    assert node_problems([nameless], 1)[0].startswith("job (unnamed): 2 pods")
    many = pods(worker=2, ports=[{"containerPort": 1, "hostPort": port} for port in (9, 7, 8)])
    assert "host port 7/TCP" in node_problems([many], 1)[0]


def test_a_fault_is_written_with_its_path_and_its_file():
    assert format_path(("a", 0, "b-c", "d/e", "f")) == 'a[0].b-c["d/e"].f'
    assert str(Fault((), "x")) == "the document: x"
    assert Fault(("a",), "x").at({}, "f") == "f: a: x"
    assert Fault(("a",), "x").at({}, "") == "a: x"
    (read,) = documents("kind: A\nspec:\n  b: 1\n", "f")
    assert Fault(("spec", "b"), "x").at(read, "f") == "f:3: spec.b: x"
    assert Fault(("spec", "c"), "x").at(read, "f") == "f:2: spec.c: x"
    assert parse_fault("a.b: c: d") == Fault(("a", "b"), "c: d", Severity.ERROR)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: 1".encode("utf-16"),
         "is encoded in UTF-16, not UTF-8; save it as UTF-8, or convert it with `iconv -f UTF-16"),
        ("名: 值\n".encode("gb18030"), "is encoded in GBK, not UTF-8"),
        (b"a: 1\n\xff\xff", "is not a text file: it is not encoded in UTF-8"),
        ("名: \0".encode("gb18030"), "is not a text file: it is not encoded in UTF-8"),
        (b"a: 1\nb: \0", "contains zero bytes, so it is not a text file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_text_says_what_it_is(content: bytes, problem: str):
    with pytest.raises(BadFile) as raised:
        decode(content, "my job.yaml")
    assert raised.value.problem.startswith(problem)
    if "iconv" in raised.value.problem:
        assert "'my job.yaml' > utf8.yaml`" in raised.value.problem
    assert decode(b"\xef\xbb\xbfa: 1", "f") == "a: 1"


def test_the_line_of_what_cannot_be_decoded_is_named():
    for content, line in ((b"a: 1\nb: \0", 2), (b"a: 1\n\nb: \xff", 3)):
        with pytest.raises(BadFile) as raised:
            decode(content, "f")
        assert raised.value.line == line
    with pytest.raises(BadFile, match=r"`iconv -f UTF-16 -t UTF-8`"):
        decode("a".encode("utf-16"), "standard input")


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        ("- a\n", 'a Kubernetes object is a mapping, not a list: ["a"]', 1),
        ("\nabc\n", 'a Kubernetes object is a mapping, not text: "abc"', 2),
        ("true", "a Kubernetes object is a mapping, not true or false: true", 1),
        ("7", "a Kubernetes object is a mapping, not a number: 7", 1),
        ("kind: [A]", 'kind: ["A"] is not a string', 1),
        ("kind: A\napiVersion: 1", "apiVersion: 1 is not a string", 2),
        ("kind: A\nmetadata:", "metadata: is empty; indent its fields, such as `name: NAME`", 2),
        ("metadata: x", 'metadata: "x" is not a mapping of fields, such as `name: NAME`', 1),
        ("kind: List\nitems: x", "items: is not a list; start each object with `- `", 2),
        ("kind: List\nitems: [{kind: A}, 7]", "a Kubernetes object is a mapping, not a number: 7", 2),
        ("# nothing\n", "is empty; it should contain a PaddleJob (`pdj init` writes one)", 0),
    ],
)
def test_what_is_no_object_says_why_and_where(text: str, problem: str, line: int):
    with pytest.raises(BadFile) as raised:
        documents(text, "f")
    assert (raised.value.problem, raised.value.line) == (problem, line)


def test_a_list_is_read_as_its_objects_and_empty_documents_are_skipped():
    read = documents("---\n---\nkind: List\nitems:\n- kind: A\n- kind: B\n---\nkind: C\n", "f")
    assert [one["kind"] for one in read] == ["A", "B", "C"]
    assert [one.line(("kind",)) for one in read] == [5, 6, 8]


@pytest.mark.parametrize("character", FULL_WIDTH)
def test_punctuation_of_another_keyboard_is_shown_with_what_yaml_needs(character: str):
    problem, hint = full_width(character)
    assert "is not YAML punctuation" in problem
    assert hint.startswith("write ")
    names = {"\u3000": "full-width space", "\xa0": "non-breaking space"}
    assert names.get(character, f"character {character}") in problem
    if character == "：":
        assert hint == "write `:` and a space"


def test_values_are_shown_as_in_a_file_and_shortened():
    assert (show("a"), show(1.5), show(["名"]), show(None)) == ('"a"', "1.5", '["名"]', "null")
    assert len(show("x" * (MOST_SHOWN - 2))) == MOST_SHOWN
    assert show("x" * MOST_SHOWN) == '"' + "x" * (MOST_SHOWN - 4) + "..."


def test_a_job_is_named_after_its_program():
    assert python_file("src/my_train.v2.py").title == "my_train.v2"
    assert python_file("run.sh", ("a",)).command == ("bash", "run.sh", "a")
    assert python_module("pkg.train", ("a",)).command == ("python", "-m", "pkg.train", "a")
    assert shell_command(("accelerate", "launch", "x/train.py")).title == "train"
    assert shell_command(("/bin/echo", "x")).title == "echo"
    assert job_name("My_Train..v2-") == "my-train-v2"
    assert (job_name("训练"), job_name("x" * 50)) == ("job", "x" * 40)


@pytest.mark.parametrize(
    ("command", "launched"),
    [
        (("python", "t.py"), True),
        (("python", "-m", "paddle.distributed.launch", "t.py"), False),
        (("bash", "t.sh"), False),
    ],
)
def test_paddles_launcher_starts_a_process_for_each_of_several_gpus(command: tuple[str, ...], launched: bool):
    def used(gpus: int | None) -> list[str]:
        made = job_of_program(shell_command(command), Overrides(gpus=gpus))
        return list(made["spec"]["worker"]["template"]["spec"]["containers"][0]["command"])

    assert used(None) == used(1) == list(command)
    assert used(2) == (["python", "-m", "paddle.distributed.launch", "t.py"] if launched else list(command))


def test_the_command_line_overrides_what_a_job_says():
    made = document(ps=1, workers=2)
    trainer = made["spec"]["worker"]["template"]["spec"]["containers"][0]
    trainer |= {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    trainer["resources"] = {"limits": {"nvidia.com/gpu": 8, "cpu": 1}}
    wanted = Overrides("new", 4, 3, 0, "mine:1", environment={"B": "3"}, claims={"data": "/mnt/data"})
    changed = overridden(made, wanted)
    worker = changed["spec"]["worker"]["template"]["spec"]
    assert (changed["metadata"]["name"], changed["spec"]["worker"]["replicas"], changed["spec"]["ps"]["replicas"]) == (
        "new", 4, 3
    )  # fmt: skip
    assert worker["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]
    assert worker["containers"][0]["resources"] == {"limits": {"cpu": 1}}
    assert worker["containers"][0]["volumeMounts"] == [{"name": "data", "mountPath": "/mnt/data"}]
    assert worker["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert changed["spec"]["ps"]["template"]["spec"]["containers"][0]["image"] == "mine:1"
    assert "resources" not in changed["spec"]["ps"]["template"]["spec"]["containers"][0]
    assert made["metadata"]["name"] == "mnist", "the job itself stays"
    assert overridden(changed, Overrides(claims={"data": ""})) == changed, "the claim is mounted already"
    assert "ps" not in overridden(document(), Overrides(servers=2))["spec"]
    assert overridden({}, Overrides()) == {"metadata": {}, "spec": {}}


def test_a_queue_is_kueues_unless_the_job_asks_for_volcano():
    made = overridden(document(labels={"a": "b"}), Overrides(queue="q"))
    assert made["metadata"]["labels"] == {"a": "b", "kueue.x-k8s.io/queue-name": "q"}
    policy = overridden(document(schedulingPolicy={"minAvailable": 2}), Overrides(queue="q"))
    assert policy["spec"]["schedulingPolicy"] == {"minAvailable": 2, "queue": "q"}
    volcano = document()
    volcano["spec"]["worker"]["template"]["spec"]["schedulerName"] = "volcano"
    assert overridden(volcano, Overrides(queue="q"))["spec"]["schedulingPolicy"] == {"queue": "q"}


def test_an_accelerator_is_a_device_of_the_training_container():
    def asks(**resources: Any) -> bool:
        return has_accelerator(job({"resources": resources})["spec"]["worker"]["template"])

    assert asks(limits={"nvidia.com/gpu": 1}) and asks(requests={"a/b": "2"})
    assert not asks(limits={"nvidia.com/gpu": 0}) and not asks(limits={"nvidia.com/gpu": "0"}) and not asks()
    assert not asks(limits={"cpu": 4})
