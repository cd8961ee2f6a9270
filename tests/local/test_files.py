"""What a pod finds in its file system: volumes at their mount paths, images as directories. Nothing stays behind."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from paddlejob.local.sandbox.supervisor import probe
from tests.support.pdj import Pdj

NAMESPACES, WHY_NOT = probe()
needs_namespaces = pytest.mark.skipif(not NAMESPACES, reason=f"no namespaces here: {WHY_NOT}")


def mounting(path: str, volume: dict[str, object], script: str, **mount: object) -> dict[str, object]:
    return {
        "command": ["bash", "-c", script],
        "backoffLimit": 0,
        "container": {"volumeMounts": [{"name": "data", "mountPath": path, **mount}]},
        "pod": {"volumes": [{"name": "data", **volume}]},
    }


@needs_namespaces
def test_a_claim_is_really_at_its_mount_path_and_is_kept_for_the_next_job(pdj: Pdj):
    claim = {"persistentVolumeClaim": {"claimName": "models"}}
    first = pdj("run", pdj.write("first", **mounting("/nas/deep/er", claim, "echo 42 > /nas/deep/er/weights")))
    assert first.returncode == 0, first.stderr
    assert "Claim models is stored in" in first.stderr
    second = pdj("run", pdj.write("second", **mounting("/nas", claim, "cat /nas/weights; ls -d /nas")))
    assert second.returncode == 0, second.stderr
    assert pdj.log("second", "worker-0") == "42\n/nas\n"
    assert not Path("/nas").exists(), "a mount point was left on the machine"


@needs_namespaces
def test_the_user_maps_a_claim_to_a_directory(pdj: Pdj):
    (pdj.folder / "data" / "wide_and_deep").mkdir(parents=True)
    (pdj.folder / "data" / "wide_and_deep" / "train.py").write_text("print('trained')")
    claim = {"persistentVolumeClaim": {"claimName": "nfs-pvc"}}
    file = pdj.write(**mounting("/nas", claim, "cd /nas/wide_and_deep; python3 train.py"))
    done = pdj("run", "--volume", f"nfs-pvc={pdj.folder / 'data'}", file)
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "trained\n"
    empty = pdj("run", pdj.write("empty", **mounting("/nas", claim, "cd /nas/wide_and_deep && python3 train.py")))
    assert empty.returncode == 1
    assert "--volume CLAIM=DIR" in pdj("why", "empty").stdout


@needs_namespaces
def test_shared_memory_is_the_pods_own(pdj: Pdj):
    memory = {"emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}
    done = pdj("run", pdj.write(**mounting("/dev/shm", memory, "ls /dev/shm; df --output=size /dev/shm | tail -1")))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0").split() == ["65536"]


@needs_namespaces
def test_a_read_only_mount_cannot_be_written(pdj: Pdj):
    done = pdj("run", pdj.write(**mounting("/data", {"emptyDir": {}}, "touch /data/x", readOnly=True)))
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr


@needs_namespaces
def test_a_missing_host_path_is_replaced_by_a_local_directory_and_noted(pdj: Pdj):
    absent = {"hostPath": {"path": "/no/such/place"}}
    done = pdj("run", pdj.write(**mounting("/data", absent, "touch /data/x")))
    assert done.returncode == 0, done.stderr
    assert "hostPath /no/such/place does not exist here" in done.stderr
    assert (pdj.state / "host/no/such/place/x").exists()


@needs_namespaces
def test_config_maps_and_secrets_of_the_same_file_are_files_and_variables(pdj: Pdj):
    options = mounting("/etc/train", {"configMap": {"name": "settings"}}, "cat /etc/train/lr; echo $KEY $LR")
    options["container"] |= {  # type: ignore[operator]
        "env": [
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}},
            {"name": "LR", "value": "$(lr)/$$(lr)/$(nothing)"},
        ],
        "envFrom": [{"configMapRef": {"name": "settings"}}],
    }
    file = Path(pdj.write(**options))
    others = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"lr": "0.1\n"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"key": "abc"}},
        {"apiVersion": "v1", "kind": "PodGroup", "metadata": {"name": "job"}},
    ]
    file.write_text("---\n".join([file.read_text(), *map(yaml.safe_dump, others)]))
    done = pdj("run", str(file))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "0.1\nabc 0.1 /$(lr)/$(nothing)\n"
    assert "not used on a single machine: PodGroup job" in done.stderr


def test_the_user_maps_an_image_to_a_directory(pdj: Pdj):
    code = pdj.folder / "my code"
    code.mkdir()
    (code / "train.py").write_text("import os; print(os.getcwd())")
    file = pdj.write(command=["python", "train.py"])
    done = pdj("run", "--image", f"program={code}", file)
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0").strip() == str(code)


def test_a_mapping_file_gives_an_image_its_command(pdj: Pdj):
    (pdj.folder / "code").mkdir()
    mapping = {"program": {"directory": "code", "command": ["pwd"]}}
    (pdj.folder / "paddlejob-images.yaml").write_text(yaml.safe_dump(mapping))
    done = pdj("run", pdj.write())
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0").strip() == str(pdj.folder / "code")


def test_init_containers_come_first_and_sidecars_do_not_keep_a_job_open(pdj: Pdj):
    share = {"volumeMounts": [{"name": "data", "mountPath": "/share"}]} if NAMESPACES else {}
    script = "cat /share/prepared" if NAMESPACES else "echo prepared"
    pod = {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "initContainers": [
            {"name": "prepare", "image": "x", "command": ["bash", "-c", "echo prepared > /share/prepared"]}
        ]
        if NAMESPACES
        else [],
        "containers": [
            {"name": "sidecar", "image": "x", "command": ["sleep", "300"]},
            {"name": "paddle", "image": "x", "command": ["bash", "-c", script], **share},
        ],
    }
    for container in pod["initContainers"]:  # type: ignore[attr-defined]
        container |= share
    done = pdj("run", pdj.write(pod=pod))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0") == "prepared\n"
    assert pdj.processes() == []


@needs_namespaces
def test_by_service_pods_find_each_other_by_name(pdj: Pdj):
    script = "getent hosts ${PADDLE_TRAINERS#*,}; echo $POD_IP"
    done = pdj("run", pdj.write(command=["bash", "-c", script], workers=2, intranet="Service"))
    assert done.returncode == 0, done.stderr
    address, own = pdj.log("job", "worker-0").splitlines()
    assert address.startswith("127.")
    assert re.fullmatch(r"worker-0-\w{5}-1\.job-peers\.default\.svc", own)


def test_without_namespaces_names_become_addresses_and_mounts_are_rejected(pdj: Pdj):
    pdj.environment["PADDLEJOB_NAMESPACES"] = "0"
    done = pdj("run", pdj.write(command=["bash", "-c", "echo $POD_IP"], workers=2, intranet="Service"))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0").startswith("127.")
    rejected = pdj("run", pdj.write("mounts", **mounting("/nas", {"emptyDir": {}}, "true")))
    assert rejected.returncode == 1
    assert "mountPath /nas cannot be mounted" in rejected.stderr
    allowed = pdj("run", pdj.write("shm", **mounting("/dev/shm", {"emptyDir": {"medium": "Memory"}}, "true")))
    assert allowed.returncode == 0, allowed.stderr
    assert "/dev/shm is shared with the machine" in allowed.stderr


def test_an_image_named_on_the_command_line_wins_over_the_mapping_file(pdj: Pdj):
    for name in ("mapped", "named"):
        (pdj.folder / name).mkdir()
    (pdj.folder / "paddlejob-images.yaml").write_text("registry.example.com/program: ./mapped\n")
    file = pdj.write(command=["pwd"], container={"image": "registry.example.com/program:v1"})
    assert pdj("run", "--image", "program=named", file).returncode == 0
    assert pdj.log("job", "worker-0").strip().endswith("/named")


@needs_namespaces
def test_files_written_beside_a_mount_point_are_kept_also_in_a_busy_directory(pdj: Pdj):
    script = "echo trained > model.pdparams.$PADDLE_TRAINER_ID; echo scratch > data/deep/x; ls data/deep"
    options = mounting(f"{pdj.folder}/data/deep", {"emptyDir": {}}, script) | {"workers": 3}
    file = pdj.write(**options)
    busy = subprocess.Popen(
        ["bash", "-c", "while true; do mkdir busy-d$RANDOM; touch busy-f$RANDOM; rm -rf busy-*; done"], cwd=pdj.folder
    )
    try:
        done = pdj("run", "--overcommit", file)
    finally:
        busy.kill()
        busy.wait()
    assert done.returncode == 0, done.stderr + pdj.log("job", "worker-0")
    for worker in range(3):
        assert (pdj.folder / f"model.pdparams.{worker}").read_text() == "trained\n"
        assert pdj.log("job", f"worker-{worker}") == "x\n"
    assert list((pdj.folder / "data" / "deep").iterdir()) == [], "the volume is not in the user's directory"


@needs_namespaces
def test_what_cannot_be_kept_cannot_be_written(pdj: Pdj):
    """The root directory is a copy where a mount point is missing in it: a file there would vanish without a word."""
    done = pdj("run", pdj.write(**mounting("/pdj-no-such-dir", {"emptyDir": {}}, "echo model > /pdj-output")))
    assert done.returncode == 1
    assert "Read-only file system" in done.stderr
    assert not Path("/pdj-no-such-dir").exists()
    assert not Path("/pdj-output").exists()


@needs_namespaces
def test_the_containers_of_a_pod_share_a_volume_in_memory(pdj: Pdj):
    share = {"volumeMounts": [{"name": "mem", "mountPath": "/mem"}]}
    part = {"volumeMounts": [{"name": "mem", "mountPath": "/part", "subPath": "a/b"}]}
    pod = {
        "volumes": [{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
        "initContainers": [
            {"name": "prepare", "image": "x", "command": ["bash", "-c", "echo 1 > /part/first"], **part}
        ],
        "containers": [
            {"name": "side", "image": "x", "command": ["bash", "-c", "echo 2 > /mem/second; sleep 300"], **share},
            {
                "name": "paddle",
                "image": "x",
                "command": [
                    "bash",
                    "-c",
                    "until [ -s /mem/second ]; do sleep 0.1; done; cat /mem/a/b/first /mem/second; "
                    "df --output=size,fstype /mem | tail -1",
                ],
                **share,
            },
        ],
    }
    done = pdj("run", pdj.write(pod=pod, activeDeadlineSeconds=50))
    assert done.returncode == 0, done.stderr
    assert pdj.log("job", "worker-0").split() == ["1", "2", "8192", "tmpfs"]


@needs_namespaces
def test_a_sub_path_can_be_made_from_variables(pdj: Pdj):
    options = mounting(
        "/out", {"persistentVolumeClaim": {"claimName": "models"}}, "echo $POD > /out/x", subPathExpr="$(POD)/o"
    )
    options["container"] |= {  # type: ignore[operator]
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    }
    done = pdj("run", pdj.write(workers=2, **options))
    assert done.returncode == 0, done.stderr
    for worker in range(2):
        found = pdj.store.claim("default", "models") / f"job-worker-{worker}" / "o" / "x"
        assert found.read_text() == f"job-worker-{worker}\n"


@needs_namespaces
@pytest.mark.parametrize("how", ["subPath", "subPathExpr"])
def test_a_sub_path_never_leads_out_of_its_volume(pdj: Pdj, how: str):
    claim = {"persistentVolumeClaim": {"claimName": "models"}}
    (pdj.folder / "secret").mkdir()
    inside = pdj.store.claim("default", "models")
    inside.mkdir(parents=True)
    (inside / "link").symlink_to(pdj.folder / "secret")
    done = pdj("run", pdj.write(**mounting("/data", claim, "touch /data/x", **{how: "link/new"})))
    assert done.returncode == 1
    assert "points outside the volume" in done.stderr
    assert list((pdj.folder / "secret").iterdir()) == []
