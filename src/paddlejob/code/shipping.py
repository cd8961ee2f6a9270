"""An archive in a job: ConfigMaps that hold its parts, and pods that unpack them before the program starts. Pure."""

from __future__ import annotations

import base64
import copy
from typing import Any

from paddlejob import contract
from paddlejob.api.template import training_container
from paddlejob.code.archive import Archive

Object = dict[str, Any]
PART_BYTES = 900 * 1000
"""A ConfigMap holds 1 MiB, with its metadata."""
CODE_DIRECTORY = "/paddlejob/code"
PARTS_DIRECTORY = "/paddlejob/parts"
CODE_VOLUME = "paddlejob-code"
PARTS_VOLUME = "paddlejob-code-parts"
UNPACKER = "paddlejob-code"
ROLES = ("ps", "worker", "heter")
_PYTHON = (
    'import glob, io, tarfile; parts = sorted(glob.glob("{parts}/*")); '
    'tarfile.open(fileobj=io.BytesIO(b"".join(open(part, "rb").read() for part in parts)), mode="r:gz")'
    '.extractall("{code}")'
)
_SCRIPT = """\
if command -v tar >/dev/null && command -v gzip >/dev/null; then
  cat {parts}/* | gzip -dc | tar -xf - -C {code}
elif command -v python3 >/dev/null; then
  python3 -c '{python}'
elif command -v python >/dev/null; then
  python -c '{python}'
else
  echo "cannot unpack the code: the image has neither tar and gzip nor python" >&2; exit 1
fi
"""


def config_map_names(digest: str, parts: int) -> list[str]:
    return [f"code-{digest}-{number}" for number in range(parts)]


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
    annotations[contract.ANNOTATION_CODE] = f"{archive.digest}/{parts}"
    for role in ROLES:
        if role in document["spec"]:
            _add_code(document["spec"][role]["template"]["spec"], config_map_names(archive.digest, parts))
    return document


def _add_code(pod: Object, names: list[str]) -> None:
    trainer = training_container(pod["containers"])
    code = {"name": CODE_VOLUME, "mountPath": CODE_DIRECTORY}
    trainer.setdefault("workingDir", CODE_DIRECTORY)
    trainer.setdefault("volumeMounts", []).append(code)
    script = _SCRIPT.format(
        parts=PARTS_DIRECTORY, code=CODE_DIRECTORY, python=_PYTHON.format(parts=PARTS_DIRECTORY, code=CODE_DIRECTORY)
    )
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
    sources = [{"configMap": {"name": name}} for name in names]
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
