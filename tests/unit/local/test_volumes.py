"""The volumes of a pod: where their files are on this machine, and how containers see them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from paddlejob.errors import NotPossible
from paddlejob.local.options import RunOptions
from paddlejob.local.runtime.container import PodFacts
from paddlejob.local.runtime.volumes import VolumeSource, copy_image, create, find_source, mounts_of, named
from paddlejob.local.state.store import JobStore

FACTS = PodFacts({"metadata": {"name": "mnist-worker-0", "namespace": "team"}, "spec": {}}, "127.64.0.1", "uid-1", "pc")


def find(tmp_path: Path, options: RunOptions | None = None, **volume: Any) -> VolumeSource:
    return find_source(
        {"name": "data", **volume}, "team", tmp_path / "own", options or RunOptions(), JobStore(tmp_path)
    )


def mounts(source: VolumeSource, variables: dict[str, str] | None = None, **mount: Any) -> dict[str, Any]:
    made = {"name": "paddle", "volumeMounts": [{"name": "data", "mountPath": "/data", **mount}]}
    (found,) = mounts_of(made, {"data": source}, {}, variables or {})
    return dict(found)


def test_an_empty_directory_belongs_to_the_pod(tmp_path: Path):
    assert find(tmp_path, emptyDir={}) == VolumeSource(tmp_path / "own" / "data")


def test_an_empty_directory_in_memory_has_the_size_of_the_template(tmp_path: Path):
    source = find(tmp_path, emptyDir={"medium": "Memory", "sizeLimit": "1Mi"})
    own = str(tmp_path / "own" / "data")
    assert mounts(source) == {"target": "/data", "source": own, "readonly": False, "memory": own, "size": 1 << 20}
    assert not (tmp_path / "own").exists(), "the supervisor mounts it"
    assert "size" not in mounts(find(tmp_path, emptyDir={"medium": "Memory"}))


def test_a_host_path_is_the_path_itself_where_it_exists(tmp_path: Path):
    (tmp_path / "set").mkdir()
    assert find(tmp_path, hostPath={"path": str(tmp_path / "set")}) == VolumeSource(tmp_path / "set")


def test_a_host_path_that_does_not_exist_is_substituted_with_a_note(tmp_path: Path):
    source = find(tmp_path, hostPath={"path": "/of-another/machine"})
    assert source.path == tmp_path / "host" / "of-another" / "machine"
    assert "/of-another/machine does not exist here" in source.note
    assert "--volume /of-another/machine=DIR" in source.note


def test_a_user_chooses_a_directory_for_a_host_path_and_all_below_it(tmp_path: Path):
    options = RunOptions(volumes={"/of-another": str(tmp_path / "mine")})
    assert find(tmp_path, options, hostPath={"path": "/of-another/set"}) == VolumeSource(tmp_path / "mine" / "set")
    assert find(tmp_path, options, hostPath={"path": "/of-another"}) == VolumeSource(tmp_path / "mine")
    assert find(tmp_path, options, hostPath={"path": "/of-anothers"}).note


def test_a_host_path_does_not_lead_upwards(tmp_path: Path):
    with pytest.raises(NotPossible, match="must not contain"):
        find(tmp_path, hostPath={"path": "/data/../etc"})


def test_a_claim_is_kept_in_the_namespace_of_its_job_with_a_note(tmp_path: Path):
    source = find(tmp_path, persistentVolumeClaim={"claimName": "set"})
    assert (source.path, source.readonly) == (tmp_path / "claims" / "team" / "set", False)
    assert "--volume set=DIR" in source.note
    assert find(tmp_path, persistentVolumeClaim={"claimName": "set", "readOnly": True}).readonly


def test_a_claim_is_the_directory_that_the_user_chose(tmp_path: Path):
    options = RunOptions(volumes={"set": str(tmp_path / "mine")})
    assert find(tmp_path, options, persistentVolumeClaim={"claimName": "set"}) == VolumeSource(tmp_path / "mine")


def test_a_claim_of_the_job_file_is_the_host_path_of_its_volume(tmp_path: Path):
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "set"}, "spec": {"volumeName": "disk"}}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {"hostPath": {"path": str(tmp_path)}}}
    chosen = find(tmp_path, RunOptions(objects=(claim, volume)), persistentVolumeClaim={"claimName": "set"})
    assert chosen == VolumeSource(tmp_path)
    other = {**volume, "spec": {"csi": {}}}
    kept = find(tmp_path, RunOptions(objects=(claim, other)), persistentVolumeClaim={"claimName": "set"})
    assert kept.path == tmp_path / "claims" / "team" / "set"


@pytest.mark.parametrize("name", ["../out", "..", "a/b", ""])
def test_no_name_of_a_volume_or_claim_leads_out_of_the_store(tmp_path: Path, name: str):
    with pytest.raises(NotPossible, match="volume"):
        find(tmp_path, persistentVolumeClaim={"claimName": name})
    with pytest.raises(NotPossible, match="volume"):
        find_source({"name": name, "emptyDir": {}}, "team", tmp_path, RunOptions(), JobStore(tmp_path))


def test_an_nfs_volume_needs_a_directory_of_the_user(tmp_path: Path):
    nfs = {"server": "nas", "path": "/set"}
    with pytest.raises(NotPossible, match="--volume nas:/set=DIR"):
        find(tmp_path, nfs=nfs)
    assert find(tmp_path, RunOptions(volumes={"nas:/set": "/mnt"}), nfs=nfs) == VolumeSource(Path("/mnt"))


@pytest.mark.parametrize(
    ("volume", "name"),
    [
        ({"persistentVolumeClaim": {"claimName": "set"}}, "set"),
        ({"hostPath": {"path": "/data"}}, "/data"),
        ({"nfs": {"server": "nas", "path": "/set"}}, "nas:/set"),
        ({"emptyDir": {}}, ""),
    ],
)
def test_the_name_that_an_option_replaces(volume: dict[str, Any], name: str):
    assert named({"name": "data", **volume}) == name


def test_what_this_machine_cannot_mount_is_named_with_the_remedy(tmp_path: Path):
    with pytest.raises(NotPossible, match=r"volume data: csi is not supported .* --volume CLAIM=DIR"):
        find(tmp_path, csi={}, emptyDir=None)


def test_a_volume_without_a_type_is_an_empty_directory_of_the_pod(tmp_path: Path):
    assert find(tmp_path) == find(tmp_path, csi=None) == find(tmp_path, emptyDir={})


SETTINGS = {"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a.yaml": "a: 1", "b.yaml": "b: 2"}}
TOKEN = {"kind": "Secret", "metadata": {"name": "token"}, "data": {"key": base64.b64encode(b"\xffabc").decode()}}
OBJECTS = RunOptions(objects=(SETTINGS, TOKEN))


def files(tmp_path: Path, **volume: Any) -> dict[str, bytes]:
    source = find(tmp_path, OBJECTS, **volume)
    create({"name": "data", **volume}, source, FACTS)
    paths = (path for path in source.path.rglob("*") if path.is_file())
    return {str(path.relative_to(source.path)): path.read_bytes() for path in paths}


def test_config_maps_and_secrets_become_files_byte_for_byte(tmp_path: Path):
    assert files(tmp_path / "1", configMap={"name": "settings"}) == {"a.yaml": b"a: 1", "b.yaml": b"b: 2"}
    assert files(tmp_path / "2", secret={"secretName": "token"}) == {"key": b"\xffabc"}


def test_chosen_keys_become_files_at_their_paths(tmp_path: Path):
    items = [{"key": "b.yaml", "path": "conf/b.yaml"}]
    assert files(tmp_path, configMap={"name": "settings", "items": items}) == {"conf/b.yaml": b"b: 2"}


def test_a_missing_object_or_key_is_an_error_unless_it_is_optional(tmp_path: Path):
    absent = [{"key": "c.yaml", "path": "c"}]
    with pytest.raises(NotPossible, match="ConfigMap absent does not exist"):
        files(tmp_path, configMap={"name": "absent"})
    with pytest.raises(NotPossible, match=r"ConfigMap settings has no key c.yaml"):
        files(tmp_path, configMap={"name": "settings", "items": absent})
    assert files(tmp_path, configMap={"name": "absent", "optional": True}) == {}
    assert files(tmp_path, configMap={"name": "settings", "items": absent, "optional": True}) == {}


@pytest.mark.parametrize("path", ["/absolute", "../up", ""])
def test_no_file_of_a_volume_is_written_outside_of_it(tmp_path: Path, path: str):
    path = f"{tmp_path}{path}" if path.startswith("/") else path
    with pytest.raises(NotPossible, match="points outside the volume"):
        files(tmp_path, configMap={"name": "settings", "items": [{"key": "a.yaml", "path": path}]})
    item = {"path": path, "fieldRef": {"fieldPath": "metadata.name"}}
    with pytest.raises(NotPossible, match="points outside the volume"):
        files(tmp_path, downwardAPI={"items": [item]})


def test_fields_of_the_pod_become_files_and_resources_are_left_out(tmp_path: Path):
    field = {"path": "about/name", "fieldRef": {"fieldPath": "metadata.name"}}
    resource = {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu"}}
    assert files(tmp_path, downwardAPI={"items": [field, resource]}) == {"about/name": b"mnist-worker-0"}


def test_a_volume_that_exists_is_used_as_it_is(tmp_path: Path):
    (tmp_path / "own" / "data").mkdir(parents=True)
    (tmp_path / "own" / "data" / "kept").write_text("x")
    assert files(tmp_path, emptyDir={}) == {"kept": b"x"}


def test_a_mount_or_a_claim_may_be_read_only(tmp_path: Path):
    assert mounts(VolumeSource(tmp_path))["readonly"] is False
    assert mounts(VolumeSource(tmp_path), readOnly=True)["readonly"] is True
    assert mounts(VolumeSource(tmp_path, readonly=True))["readonly"] is True


def test_directories_that_the_user_chose_are_mounted_below_the_volumes(tmp_path: Path):
    made = {"name": "paddle", "volumeMounts": [{"name": "data", "mountPath": "/nas/data"}]}
    found = mounts_of(made, {"data": VolumeSource(tmp_path)}, {"/nas": "/mine"}, {})
    assert [(one["target"], one["source"]) for one in found] == [("/nas", "/mine"), ("/nas/data", str(tmp_path))]


def test_a_part_of_a_volume_is_created_and_mounted(tmp_path: Path):
    assert mounts(VolumeSource(tmp_path), subPath="a/b")["source"] == str(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_part_of_a_volume_may_be_named_by_a_variable(tmp_path: Path):
    found = mounts(VolumeSource(tmp_path), {"POD": "mnist-worker-0"}, subPathExpr="logs/$(POD)", subPath="ignored")
    assert found["source"] == str(tmp_path / "logs" / "mnist-worker-0")


@pytest.mark.parametrize(
    ("mount", "message"),
    [
        ({"subPath": "../etc"}, "subPath ../etc points outside"),
        ({"subPath": "/etc"}, "subPath /etc points outside"),
        ({"subPathExpr": "$(UP)/etc"}, "subPathExpr ../etc points outside"),
        ({"subPathExpr": "$(POD)"}, "the container has no variable POD; add it to env"),
    ],
)
def test_a_part_outside_the_volume_is_refused(tmp_path: Path, mount: dict[str, str], message: str):
    with pytest.raises(NotPossible) as raised:
        mounts(VolumeSource(tmp_path), {"UP": ".."}, **mount)
    assert message in str(raised.value)


def test_a_link_that_a_program_wrote_does_not_lead_out_of_the_volume(tmp_path: Path):
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "out").symlink_to(tmp_path)
    with pytest.raises(NotPossible, match="subPath out/new points outside the volume; remove the link"):
        mounts(VolumeSource(tmp_path / "volume"), subPath="out/new")
    assert not (tmp_path / "new").exists()


def test_a_copy_of_an_example_leaves_out_bytecode_and_may_be_made_again(tmp_path: Path):
    (tmp_path / "example" / "__pycache__").mkdir(parents=True)
    (tmp_path / "example" / "train.py").write_text("")
    for _ in range(2):
        copied = copy_image(tmp_path / "example", tmp_path / "own", {})
    assert [path.name for path in copied.iterdir()] == ["train.py"]


def test_a_program_of_an_example_may_have_another_name_in_the_copy(tmp_path: Path):
    (tmp_path / "example").mkdir()
    (tmp_path / "example" / "train.py").write_text("train()")
    copied = copy_image(tmp_path / "example", tmp_path / "own", {"old.py": "train.py"})
    assert {path.name: path.read_text() for path in copied.iterdir()} == {"train.py": "train()", "old.py": "train()"}
