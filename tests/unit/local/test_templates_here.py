"""What a template asks for: values of its environment, claims, host names, and what killed engines left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts, config_maps, environment, field_value, secrets
from paddlejob.local.runtime.pod_runtime import HOSTS
from paddlejob.local.runtime.volumes import find_source, mounts_of
from paddlejob.local.state.leftovers import remove_leftovers
from paddlejob.local.state.store import Store
from tests.support.builders import NOON, document
from tests.support.scripted_supervisor import OnePod, container

METADATA = {"name": "mnist-ps-0", "namespace": "team", "labels": {"app/x": "1"}, "annotations": None}
FACTS = PodFacts(
    {"metadata": METADATA, "spec": {}},
    *("127.64.0.1", "uid-1", "pc"),
    config_maps={"settings": {"a": "1"}},
    secrets={"keys": {"b": "2"}},
)


def test_fields_that_the_template_does_not_set_have_the_defaults_of_kubernetes():
    fields = (
        "spec.serviceAccountName",
        "metadata.labels['app/x']",
        "metadata.labels['y']",
        "metadata.annotations['z']",
    )
    assert [field_value(path, FACTS) for path in fields] == ["default", "1", "", ""]


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
