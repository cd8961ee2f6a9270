"""An archive in a job: ConfigMaps that hold its parts, and pods that unpack them before the program starts. Pure."""

from __future__ import annotations

import base64
import copy
from typing import Any

from paddlejob import contract
from paddlejob.api.template import training_container
from paddlejob.code.archive import NAME_LENGTH, Archive

Object = dict[str, Any]
PART_BYTES = 900 * 1000
"""A ConfigMap holds 1 MiB, with its metadata."""
CODE_DIRECTORY = "/paddlejob/code"
PARTS_DIRECTORY = "/paddlejob/parts"
CODE_VOLUME = "paddlejob-code"
PARTS_VOLUME = "paddlejob-code-parts"
UNPACKER = "paddlejob-code"
ROLES = ("ps", "worker", "heter")
# Runs with any Python 3 in the image, so that it can't rely on the filters of tarfile.
_PYTHON = """\
import glob, hashlib, io, os, shutil, sys, tarfile
content = b"".join(open(part, "rb").read() for part in sorted(glob.glob("{parts}/*")))
if hashlib.sha256(content).hexdigest() != "{sha256}":
    sys.exit("{changed}")
root = os.path.realpath("{code}")
tar = tarfile.open(fileobj=io.BytesIO(content), mode="r:gz")
for one in tar:
    path = os.path.join(root, one.name)
    folder = os.path.dirname(path)
    ends = [path, os.path.join(folder, one.linkname) if one.issym() else path]
    if not (one.isfile() or one.issym()) or any(not os.path.realpath(end).startswith(root + os.sep) for end in ends):
        sys.exit("cannot unpack the code: " + one.name + " leads out of its directory")
    os.makedirs(folder, exist_ok=True)
    if one.issym():
        os.symlink(one.linkname, path)
        continue
    with open(path, "wb") as file:
        shutil.copyfileobj(tar.extractfile(one), file)
    os.chmod(path, one.mode & 0o755)
"""
# Without a pipe, whose first program could fail unnoticed; tar refuses by itself to write outside of the directory.
_SCRIPT = """\
if command -v python3 >/dev/null; then
  exec python3 -c '{python}'
elif command -v tar >/dev/null && command -v gzip >/dev/null && command -v sha256sum >/dev/null; then
  cat {parts}/* > {code}/.paddlejob-archive
  if ! echo "{sha256}  {code}/.paddlejob-archive" | sha256sum -c - >/dev/null 2>&1; then
    echo "{changed}" >&2; exit 1
  fi
  tar -xzf {code}/.paddlejob-archive -C {code}
  rm {code}/.paddlejob-archive
else
  echo "cannot unpack the code: the image has neither python3 nor tar, gzip and sha256sum" >&2; exit 1
fi
"""
_CHANGED = (
    "cannot unpack the code: the ConfigMaps do not hold what was submitted, so somebody changed them; delete them and "
    "submit the job again"
)


def config_map_names(digest: str, parts: int) -> list[str]:
    return [f"code-{digest[:NAME_LENGTH]}-{number}" for number in range(parts)]


def config_maps(archive: Archive, namespace: str, owner: Object) -> list[Object]:
    """Immutable, named by the digest: jobs with the same code share them, and they go with the last of the jobs."""
    parts = _parts(archive.content)
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {contract.LABEL_CODE: archive.digest},
                "ownerReferences": [owner],
            },
            "immutable": True,
            "binaryData": {f"part-{number:03}": base64.b64encode(part).decode()},
        }
        for number, (name, part) in enumerate(zip(config_map_names(archive.digest, len(parts)), parts, strict=True))
    ]


def owner_reference(job: Object) -> Object:
    return {
        "apiVersion": contract.API_VERSION,
        "kind": contract.KIND,
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
    }


def with_code(document: Object, archive: Archive) -> Object:
    """The job, with pods that unpack the archive and train in it. A working directory of the user's own stays."""
    document = copy.deepcopy(document)
    parts = len(_parts(archive.content))
    annotations = document["metadata"].setdefault("annotations", {})
    annotations[contract.ANNOTATION_CODE] = f"{archive.sha256}/{parts}"
    for role in ROLES:
        if role in document["spec"]:
            _add_code(document["spec"][role]["template"]["spec"], archive.sha256, parts)
    return document


def _add_code(pod: Object, sha256: str, parts: int) -> None:
    trainer = training_container(pod["containers"])
    code = {"name": CODE_VOLUME, "mountPath": CODE_DIRECTORY}
    trainer.setdefault("workingDir", CODE_DIRECTORY)
    trainer.setdefault("volumeMounts", []).append(code)
    values = {"parts": PARTS_DIRECTORY, "code": CODE_DIRECTORY, "sha256": sha256, "changed": _CHANGED}
    script = _SCRIPT.format(python=_PYTHON.format(**values), **values)
    unpacker = {
        "name": UNPACKER,
        "image": trainer.get("image"),
        "command": ["sh", "-ec", script],
        "volumeMounts": [code, {"name": PARTS_VOLUME, "mountPath": PARTS_DIRECTORY, "readOnly": True}],
    }
    unpacker |= {key: trainer[key] for key in ("imagePullPolicy", "securityContext") if key in trainer}
    if "resources" in trainer:
        unpacker["resources"] = _without_devices(trainer["resources"])
    pod["initContainers"] = [unpacker, *(pod.get("initContainers") or [])]
    sources = [{"configMap": {"name": name}} for name in config_map_names(sha256, parts)]
    pod.setdefault("volumes", []).extend(
        [{"name": CODE_VOLUME, "emptyDir": {}}, {"name": PARTS_VOLUME, "projected": {"sources": sources}}]
    )


def _without_devices(resources: Object) -> Object:
    """A quota may demand requests of every container; as the trainer runs later, the same again cost nothing."""
    return {
        kind: {name: amount for name, amount in (given or {}).items() if "/" not in name}
        for kind, given in resources.items()
        if kind in ("limits", "requests")
    }


def _parts(content: bytes) -> list[bytes]:
    return [content[start : start + PART_BYTES] for start in range(0, len(content), PART_BYTES)]
