"""What a template asks for: which fields have no effect here, and what a program finds in its environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, field_value, secrets
from paddlejob.local.runtime.env import LONGEST_TEMPORARY, MARK, base_environment, is_too_long, temporary_notes
from paddlejob.local.runtime.pod_runtime import HOSTS
from paddlejob.local.runtime.volumes import find_source, mounts_of
from paddlejob.local.state.leftovers import remove_leftovers
from paddlejob.local.state.store import Store
from paddlejob.local.template_checks import not_honoured
from tests.support.builders import NOON, document
from tests.support.scripted_supervisor import OnePod, container

METADATA = {"name": "mnist-ps-0", "namespace": "team", "labels": {"app/x": "1"}, "annotations": None}
FACTS = PodFacts(
    {"metadata": METADATA, "spec": {}},
    *("127.64.0.1", "uid-1", "pc"),
    config_maps={"settings": {"a": "1"}},
    secrets={"keys": {"b": "2"}},
)
IN_A_POD = """
activeDeadlineSeconds dnsConfig ephemeralContainers hostAliases hostIPC hostPID hostUsers overhead readinessGates
resourceClaims runtimeClassName securityContext setHostnameAsFQDN shareProcessNamespace subdomain
"""


@pytest.mark.parametrize("field", IN_A_POD.split())
def test_a_field_of_a_pod_without_effect_is_named(field: str):
    assert not_honoured({"containers": [], field: {"x": 1}}, isolated=True) == [field]
    assert not_honoured({"containers": [], field: None}, isolated=True) == []


@pytest.mark.parametrize(
    "field",
    ["livenessProbe", "readinessProbe", "securityContext", "startupProbe", "stdin", "tty", "volumeDevices"],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_a_field_of_a_container_without_effect_is_named(field: str, kind: str):
    pod = {"containers": [], kind: [{"name": "a", field: True}, {"name": "b", field: True}]}
    assert not_honoured(pod, isolated=True) == [field]


def test_fields_that_need_namespaces_have_an_effect_where_there_are_some():
    pod = {"hostname": "trainer", "containers": [{"name": "a", "terminationMessagePath": "/why"}]}
    assert not_honoured(pod, isolated=True) == []
    assert not_honoured(pod, isolated=False) == ["hostname", "terminationMessagePath"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "mnist-ps-0"),
        ("metadata.namespace", "team"),
        ("metadata.uid", "uid-1"),
        ("metadata.labels['app/x']", "1"),
        ("metadata.labels['absent']", ""),
        ("metadata.annotations['absent']", ""),
        ("spec.nodeName", "pc"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.64.0.1"),
        ("status.podIPs", "127.64.0.1"),
        ("status.hostIP", "127.0.0.1"),
        ("status.hostIPs", "127.0.0.1"),
    ],
)
def test_every_field_that_a_program_may_ask_for(path: str, value: str):
    assert field_value(path, FACTS) == value
    assert environment({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}]}, FACTS) == {"A": value}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"fileKeyRef": {}}, "valueFrom fileKeyRef is not supported on one machine; write the value itself"),
        ({"fieldRef": {"fieldPath": "status.phase"}}, "fieldPath status.phase is not supported on one machine"),
        ({"configMapKeyRef": {"name": "absent", "key": "a"}}, "ConfigMap absent does not exist; add it"),
        ({"configMapKeyRef": {"key": "a"}}, "ConfigMap  does not exist"),
        ({"secretKeyRef": {"name": "keys", "key": "z"}}, "Secret keys has no key z; add it, or correct the key"),
    ],
)
def test_a_value_from_nowhere_is_an_error(source: dict[str, Any], message: str):
    with pytest.raises(NotPossible, match=message):
        environment({"env": [{"name": "A", "valueFrom": source}]}, FACTS)


def test_objects_of_other_kinds_are_neither_config_maps_nor_secrets():
    objects: tuple[dict[str, Any], ...] = (
        {"kind": "ConfigMap", "metadata": {"name": "one"}, "data": None, "binaryData": {"a": "/w=="}},
        {"kind": "Secret", "metadata": {"name": "two"}, "data": {"b": "eA=="}, "stringData": None},
        {"kind": "Service", "metadata": {"name": "three"}},
    )
    assert config_maps(objects) == {"one": {"a": "\udcff"}}
    assert secrets(objects) == {"two": {"b": "x"}}


def test_the_environment_of_another_job_is_not_inherited(tmp_path: Path):
    given = {"HOME": "/root", "PADDLE_TRAINER_ID": "3", MARK: "uid-of-another", "PATH": "/bin"}
    kept = base_environment(RunOptions(environment=given, python="/usr/bin/python3"), Store(tmp_path))
    assert set(kept) == {"HOME", "PATH", "PYTHONUNBUFFERED"}
    folders = kept["PATH"].split(os.pathsep)
    assert folders[1:] == ["/usr/bin", "/bin"]
    assert Path(folders[0], "python").read_text() == Path(folders[0], "python3").read_text()


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_a_directory_for_temporary_files_with_a_long_path_is_left_out_with_a_note(tmp_path: Path, name: str):
    longest = "/" + "x" * (LONGEST_TEMPORARY - 1)
    for value, too_long in ((longest, False), (longest + "x", True), ("/" + "é" * 40, True)):
        options = RunOptions(environment={name: value, "OTHER": value * 2}, python="/usr/bin/python3")
        assert is_too_long(name, value) is too_long
        assert (name in base_environment(options, Store(tmp_path))) is not too_long
        notes = temporary_notes(options)
        assert [one.partition(" ")[0] for one in notes] == ([name] if too_long else [])
    assert not is_too_long("HOME", longest * 2)


def test_the_pods_of_jobs_that_no_engine_runs_are_removed(tmp_path: Path):
    store = Store(tmp_path)
    held = {name: store.begin(document(name), RunOptions(), NOON) for name in ("killed", "running", "clean")}
    for name in ("killed", "running"):
        (held[name][0].path / "pods" / "uid").mkdir(parents=True)
    for name in ("killed", "clean"):
        held[name][1].release()
    remove_leftovers(store)
    assert not (held["killed"][0].path / "pods").exists()
    assert (held["running"][0].path / "pods" / "uid").exists()
    assert not held["killed"][0].has_runner, "the lock is given back"
    held["running"][1].release()


def test_a_claim_without_a_volume_is_kept_and_one_that_is_read_only_stays_so(tmp_path: Path):
    objects = ({"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}},)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
    options, store = RunOptions(objects=objects), Store(tmp_path)
    source = find_source(volume, "team", tmp_path / "own", options, store)
    assert (source.path, source.readonly) == (store.claim("team", "data"), True)
    (mount,) = mounts_of({"volumeMounts": [{"name": "v", "mountPath": "/d"}]}, {"v": source}, {}, {})
    assert mount == {"target": "/d", "source": str(source.path.absolute()), "readonly": True}
    assert source.path.is_dir()


def test_a_pod_resolves_a_host_name_of_its_own(tmp_path: Path):
    stage = OnePod(tmp_path, containers=[container()], hostname="trainer")
    stage.bind()
    stage.publish()
    spec = stage.supervisor.started["paddle"]
    hosts = next(one["source"] for one in spec["mounts"] if one["target"] == "/etc/hosts")
    text = Path(hosts).read_text()
    assert "127.64.0.1 trainer trainer" in text.splitlines()
    assert text.endswith("\n"), "some programs skip a last line without an end"
    assert text.startswith(HOSTS.read_text()), "the names of this machine stay"
    assert (spec["hostname"], spec["env"]["HOSTNAME"]) == ("trainer", "trainer")
    stage.close()
