"""Code for a cluster: which files are left out, what cannot be packed, and the objects that carry the rest."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.code import archive as archives
from paddlejob.code.archive import Archive, pack
from paddlejob.code.shipping import config_maps, owner_reference, with_code
from paddlejob.errors import BadInput, NotPossible
from tests.support.builders import document

OWNER = {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "name": "mnist", "uid": "1"}
SMALL = Archive(b"x" * 1000, ("train.py",), ())


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


@pytest.mark.parametrize(
    "name",
    [
        ".git/HEAD", ".hg/x", ".svn/x", "a/__pycache__/x.py", "a.pyc", "a.pyo", ".venv/x", "venv/x", "node_modules/x",
        ".ipynb_checkpoints/x", ".mypy_cache/x", ".ruff_cache/x", ".pytest_cache/x", ".DS_Store", ".env", ".env.local",
        "a/server.pem", "server.key", "id_rsa", "id_rsa.pub", ".netrc", ".aws/credentials", ".kube/config", ".ssh/x",
    ],
)  # fmt: skip
def test_secrets_caches_and_environments_stay_here_unless_they_are_asked_for(name: str, tmp_path: Path):
    write(tmp_path, "train.py", name)
    assert pack(str(tmp_path)).files == ("train.py",)
    folders = [f"!{parent}/" for parent in Path(name).parents if str(parent) != "."]
    (tmp_path / ".pdjignore").write_text("\n".join([*folders, f"!{name}"]))
    assert pack(str(tmp_path)).files == tuple(sorted((".pdjignore", name, "train.py")))


def test_patterns_of_a_directory_match_below_it_and_the_innermost_decides(tmp_path: Path):
    write(tmp_path, "a/data/x.bin", "a/x.bin", "b/x.bin", "train.py")
    (tmp_path / "a/.pdjignore").write_text("/data/\n")
    (tmp_path / ".pdjignore").write_text("b/\n")
    packed = pack(str(tmp_path))
    assert packed.files == (".pdjignore", "a/.pdjignore", "a/x.bin", "train.py")
    assert packed.ignored == ("a/data/", "b/")


def test_a_pipe_is_not_shipped(tmp_path: Path):
    write(tmp_path, "train.py")
    os.mkfifo(tmp_path / "pipe")
    assert pack(str(tmp_path)).files == ("train.py",)


def test_a_name_that_is_not_text_is_reported(tmp_path: Path):
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("")
    with pytest.raises(NotPossible, match=r"is not UTF-8; rename or remove it"):
        pack(str(tmp_path))
    (tmp_path / os.fsdecode(b"caf\xe9.py")).rename(tmp_path / "bell\x07.py")
    assert pack(str(tmp_path)).files == ("bell\x07.py",)


@pytest.mark.parametrize("target", ["/etc/passwd", "../elsewhere", "sub/../../elsewhere"])
def test_a_link_out_of_the_directory_is_rejected(target: str, tmp_path: Path):
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(BadInput, match="copy the file, or leave the link out"):
        pack(str(tmp_path))


def test_a_link_within_the_directory_is_shipped_as_a_link(tmp_path: Path):
    write(tmp_path, "a/x.py", "b/y.py")
    (tmp_path / "a/link").symlink_to("../b/y.py")
    (tmp_path / "out").mkdir()
    assert archives.unpack(pack(str(tmp_path)).content, tmp_path / "out") == 3
    assert (tmp_path / "out/a/link").readlink() == Path("../b/y.py")


@pytest.mark.parametrize(("limit", "fits"), [(2000, True), (1999, False)])
def test_files_that_are_too_large_together_are_rejected_before_they_are_packed(
    limit: int, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(archives, "MOST_UNPACKED", limit)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    if fits:
        assert pack(str(tmp_path)).files == ("a", "b")
        return
    with pytest.raises(BadInput, match=r"has 2\.0 KiB, more than 2\.0 KiB; leave data"):
        pack(str(tmp_path))


def test_an_archive_of_exactly_the_limit_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_bytes(os.urandom(3000))
    size = len(pack(str(tmp_path)).content)
    monkeypatch.setattr(archives, "MOST_BYTES", size)
    assert len(pack(str(tmp_path)).content) == size
    monkeypatch.setattr(archives, "MOST_BYTES", size - 1)
    with pytest.raises(BadInput, match="KiB packed, more than"):
        pack(str(tmp_path))


def test_sizes_are_shown_in_mebibytes_from_one_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_bytes(b"x" * 2**20)
    (tmp_path / "b").write_bytes(b"x" * (2**20 - 1024))
    monkeypatch.setattr(archives, "MOST_UNPACKED", 10)
    with pytest.raises(BadInput) as caught:
        pack(str(tmp_path))
    assert [line.split() for line in str(caught.value).splitlines()[1:]] == [
        ["1.0", "MiB", "a"],
        ["1023.0", "KiB", "b"],
    ]


def test_a_name_of_an_archive_has_sixteen_characters():
    assert len(SMALL.digest) == 16


def test_a_job_names_its_archive_and_is_not_changed_itself():
    given = document(ps=1, workers=2)
    before = document(ps=1, workers=2)
    shipped = with_code(given, Archive(b"x" * 900_001, ("train.py",), ()))
    assert given == before
    digest = Archive(b"x" * 900_001, (), ()).digest
    assert shipped["metadata"]["annotations"] == {contract.ANNOTATION_CODE: f"{digest}/2"}
    assert shipped["metadata"]["name"] == "mnist"


def pod_of(**container: Any) -> dict[str, Any]:
    given = document(workers=1)
    given["spec"]["worker"]["template"]["spec"]["containers"][0] |= container
    pod: dict[str, Any] = with_code(given, SMALL)["spec"]["worker"]["template"]["spec"]
    return pod


def test_a_pod_unpacks_the_parts_into_a_volume_that_the_trainer_shares():
    pod = pod_of(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    (unpacker,), (trainer,) = pod["initContainers"], pod["containers"]
    code = {"name": "paddlejob-code", "mountPath": "/paddlejob/code"}
    assert trainer["volumeMounts"] == [{"name": "data", "mountPath": "/data"}, code]
    parts = {"name": "paddlejob-code-parts", "mountPath": "/paddlejob/parts", "readOnly": True}
    assert unpacker["volumeMounts"] == [code, parts]
    assert (unpacker["image"], unpacker["command"][:2]) == (trainer["image"], ["sh", "-ec"])
    sources = [{"configMap": {"name": f"code-{SMALL.digest}-0"}}]
    assert pod["volumes"] == [
        {"name": "paddlejob-code", "emptyDir": {}},
        {"name": "paddlejob-code-parts", "projected": {"sources": sources}},
    ]


def test_the_unpacker_runs_as_the_trainer_does_and_before_other_init_containers():
    given = document(workers=1)
    pod = given["spec"]["worker"]["template"]["spec"]
    pod["initContainers"] = [{"name": "mine"}]
    pod["containers"][0] |= {"imagePullPolicy": "Never", "securityContext": {"runAsUser": 7}, "env": []}
    first, second = with_code(given, SMALL)["spec"]["worker"]["template"]["spec"]["initContainers"]
    assert (first["imagePullPolicy"], first["securityContext"], second) == ("Never", {"runAsUser": 7}, {"name": "mine"})
    assert "env" not in first
    assert "resources" not in first


def test_the_unpacker_requests_what_the_trainer_does_except_for_devices():
    given = {"limits": {"nvidia.com/gpu": 8, "memory": "1Gi"}, "requests": None, "claims": [{"name": "a"}]}
    (unpacker,) = pod_of(resources=given)["initContainers"]
    assert unpacker["resources"] == {"limits": {"memory": "1Gi"}, "requests": {}}


def test_a_config_map_holds_one_numbered_part_and_belongs_to_the_job():
    first, second = config_maps(Archive(b"x" * 900_001, (), ()), "team", OWNER)
    assert (list(first["binaryData"]), list(second["binaryData"])) == (["part-000"], ["part-001"])
    assert [len(base64.b64decode(next(iter(one["binaryData"].values())))) for one in (first, second)] == [900_000, 1]
    assert (first["apiVersion"], first["kind"], first["immutable"]) == ("v1", "ConfigMap", True)
    digest = first["metadata"]["labels"][contract.LABEL_CODE]
    assert (first["metadata"]["name"], first["metadata"]["namespace"]) == (f"code-{digest}-0", "team")
    assert first["metadata"]["ownerReferences"] == [OWNER]
    assert owner_reference({"metadata": {"name": "mnist", "uid": "1", "labels": {}}}) == OWNER
