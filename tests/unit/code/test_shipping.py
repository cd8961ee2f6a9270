"""A job with shipped code: its ConfigMaps, and the script that really unpacks them."""

from __future__ import annotations

import base64
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlejob import contract
from paddlejob.api.program import Overrides, job_of_program, python_file
from paddlejob.api.validate import parse
from paddlejob.code import shipping
from paddlejob.code.archive import Archive, pack
from paddlejob.code.shipping import config_maps, owner_reference, with_code
from tests.support.builders import document

OWNER = {"apiVersion": contract.API_VERSION, "kind": contract.KIND, "name": "mnist", "uid": "1"}
SMALL = Archive(b"x" * 1000, ("train.py",), ())


def job(**wanted: Any) -> dict[str, Any]:
    return job_of_program(python_file("train.py"), Overrides(image="paddle:1", **wanted))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text("print('hello')")
    (root / "weights").write_bytes(os.urandom(5000))
    return pack(str(root))


def test_every_role_trains_in_the_shipped_directory(archive: Archive):
    document = with_code(job(servers=1), archive)
    parse(document, "test")
    for role in ("ps", "worker"):
        pod = document["spec"][role]["template"]["spec"]
        assert pod["containers"][0]["workingDir"] == shipping.CODE_DIRECTORY
        assert pod["initContainers"][0]["image"] == "paddle:1"


def test_a_working_directory_of_the_users_own_stays(archive: Archive):
    given = job()
    given["spec"]["worker"]["template"]["spec"]["containers"][0]["workingDir"] = "/mine"
    document = with_code(given, archive)
    assert document["spec"]["worker"]["template"]["spec"]["containers"][0]["workingDir"] == "/mine"


BY_TAR = ("sh", "cat", "tar", "gzip", "sha256sum", "rm")
BY_PYTHON = ("sh", "python3")


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the script with nothing but some programs in PATH, on parts as a kubelet mounts them."""
    monkeypatch.setattr(shipping, "PART_BYTES", 1000)
    monkeypatch.setattr(shipping, "CODE_DIRECTORY", str(tmp_path / "code"))
    monkeypatch.setattr(shipping, "PARTS_DIRECTORY", str(tmp_path / "parts"))
    for folder in ("code", "parts", "bin"):
        (tmp_path / folder).mkdir()

    def run(archive: Archive, tools: tuple[str, ...], mounted: Archive | None = None) -> Any:
        for tool in tools:
            real = os.path.realpath(sys.executable) if tool == "python3" else shutil.which(tool)
            (tmp_path / "bin" / tool).symlink_to(real or "")
        for made in config_maps(mounted or archive, "team", OWNER):
            for name, part in made["binaryData"].items():
                (tmp_path / "parts" / name).write_bytes(base64.b64decode(part))
        script = with_code(job(), archive)["spec"]["worker"]["template"]["spec"]["initContainers"][0]["command"]
        return subprocess.run(script, env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize("tools", [BY_TAR, BY_PYTHON])
def test_the_script_unpacks_with_tar_or_with_python(
    tools: tuple[str, ...], tmp_path: Path, unpacked: Callable[..., Any]
):
    project = tmp_path / "project"
    (project / "lib").mkdir(parents=True)
    (project / "train.py").write_text("print('hello')")
    (project / "lib" / "run.sh").write_text("#!/bin/sh\n")
    (project / "lib" / "run.sh").chmod(0o755)
    (project / "lib" / "link.py").symlink_to("../train.py")
    (project / "weights").write_bytes(os.urandom(5000))
    done = unpacked(pack(str(project)), tools)
    assert (done.returncode, done.stderr) == (0, "")
    code = tmp_path / "code"
    assert (code / "lib" / "link.py").read_text() == "print('hello')"
    assert os.access(code / "lib" / "run.sh", os.X_OK) and not os.access(code / "train.py", os.X_OK)
    assert (code / "weights").read_bytes() == (project / "weights").read_bytes()
    assert sorted(path.name for path in code.iterdir()) == ["lib", "train.py", "weights"]


@pytest.mark.parametrize("tools", [BY_TAR, BY_PYTHON])
def test_code_that_somebody_planted_is_not_unpacked(
    tools: tuple[str, ...], archive: Archive, tmp_path: Path, unpacked: Callable[..., Any]
):
    (tmp_path / "project" / "train.py").write_text("print('planted')")
    done = unpacked(archive, tools, mounted=pack(str(tmp_path / "project")))
    assert done.returncode == 1
    assert "the ConfigMaps do not hold what was submitted" in done.stderr
    assert not (tmp_path / "code" / "train.py").exists()


def test_an_image_without_the_tools_says_which_it_needs(archive: Archive, unpacked: Callable[..., Any]):
    done = unpacked(archive, ("sh",))
    needed = "cannot unpack the code: the image has neither python3 nor tar, gzip and sha256sum\n"
    assert (done.returncode, done.stderr) == (1, needed)


def member(name: str, link: str = "", kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = (tarfile.SYMTYPE, link) if link else (kind, "")
    return info


@pytest.mark.parametrize("tools", [BY_TAR, BY_PYTHON])
@pytest.mark.parametrize(
    "members",
    [
        [member("../escaped")],
        [member("out", link=".."), member("out/escaped")],
        [member("out", link="../escaped"), member("out")],
        [member("a/../../escaped")],
        [member("{tmp}/escaped")],
    ],
)
def test_no_member_of_an_archive_is_written_outside(
    tools: tuple[str, ...], members: list[tarfile.TarInfo], tmp_path: Path, unpacked: Callable[..., Any]
):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for info in members:
            info.name = info.name.format(tmp=tmp_path)
            tar.addfile(info)
    unpacked(Archive(buffer.getvalue(), (), ()), tools)
    assert not (tmp_path / "escaped").exists()


def test_a_job_names_its_archive_and_is_not_changed_itself():
    given = document(ps=1, workers=2)
    before = document(ps=1, workers=2)
    shipped = with_code(given, Archive(b"x" * 900_001, ("train.py",), ()))
    assert given == before
    sha256 = Archive(b"x" * 900_001, (), ()).sha256
    assert shipped["metadata"]["annotations"] == {contract.ANNOTATION_CODE: f"{sha256}/2"}
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
    assert second["metadata"]["name"].endswith("-1")
    assert [len(base64.b64decode(next(iter(one["binaryData"].values())))) for one in (first, second)] == [900_000, 1]
    assert (first["apiVersion"], first["kind"], first["immutable"]) == ("v1", "ConfigMap", True)
    digest = first["metadata"]["labels"][contract.LABEL_CODE]
    assert (first["metadata"]["name"], first["metadata"]["namespace"]) == (f"code-{digest}-0", "team")
    assert first["metadata"]["ownerReferences"] == [OWNER]
    assert owner_reference({"metadata": {"name": "mnist", "uid": "1", "labels": {}}}) == OWNER
