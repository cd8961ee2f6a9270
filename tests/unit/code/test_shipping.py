"""A job with shipped code: its ConfigMaps, and the script that really unpacks them."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlejob.api.program import Overrides, job_of_program, python_file
from paddlejob.api.validate import parse
from paddlejob.code import shipping
from paddlejob.code.archive import Archive, pack
from paddlejob.code.shipping import config_maps, with_code

OWNER = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "name": "train", "uid": "1"}


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


def test_the_container_that_unpacks_asks_for_no_gpu(archive: Archive):
    given = job(gpus=4)
    given["spec"]["worker"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "2"
    unpacker = with_code(given, archive)["spec"]["worker"]["template"]["spec"]["initContainers"][0]
    assert unpacker["resources"] == {"limits": {"cpu": "2"}}


@pytest.mark.parametrize("tools", [("sh", "cat", "tar", "gzip"), ("sh", "python3"), ("sh",)])
def test_the_script_unpacks_with_tar_or_with_python(
    tools: tuple[str, ...], archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It runs with nothing but these programs in PATH, on parts as a kubelet mounts them."""
    monkeypatch.setattr(shipping, "PART_BYTES", 1000)
    monkeypatch.setattr(shipping, "CODE_DIRECTORY", str(tmp_path / "code"))
    monkeypatch.setattr(shipping, "PARTS_DIRECTORY", str(tmp_path / "parts"))
    for folder in ("code", "parts", "bin"):
        (tmp_path / folder).mkdir()
    for tool in tools:
        real = os.path.realpath(sys.executable) if tool == "python3" else shutil.which(tool)
        (tmp_path / "bin" / tool).symlink_to(real or "")
    for document in config_maps(archive, "team", OWNER):
        for name, part in document["binaryData"].items():
            (tmp_path / "parts" / name).write_bytes(base64.b64decode(part))
    script = with_code(job(), archive)["spec"]["worker"]["template"]["spec"]["initContainers"][0]["command"]
    done = subprocess.run(script, env={"PATH": str(tmp_path / "bin")}, capture_output=True, text=True, check=False)
    if len(tools) == 1:
        assert (done.returncode, done.stderr) == (
            1, "cannot unpack the code: the image has neither tar and gzip nor python\n",
        )  # fmt: skip
        return
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "code" / "train.py").read_text() == "print('hello')"


def test_a_large_archive_becomes_several_config_maps_that_fit(archive: Archive):
    large = Archive(os.urandom(2_000_000), archive.files, ())
    found = config_maps(large, "team", OWNER)
    assert [one["metadata"]["name"] for one in found] == [f"code-{large.digest}-{part}" for part in range(3)]
    assert b"".join(base64.b64decode(part) for one in found for part in one["binaryData"].values()) == large.content
    assert all(one["immutable"] and one["metadata"]["ownerReferences"] == [OWNER] for one in found)
