"""Write src/paddlejob/api/pod_template.json: the schema of a pod template, cut from Kubernetes' own OpenAPI document.

The document lies in the Go module k8s.io/kubernetes. What a CRD schema cannot hold is translated (references are
inlined, Quantity becomes int-or-string); descriptions and defaults are left out, the first for size, the second
because a default in a template would show up as a change that the user never made.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from paddlejob.contract import QUANTITY

MODULE = "k8s.io/kubernetes@v1.36.3"
TARGET = Path(__file__).parent.parent / "src/paddlejob/api/pod_template.json"
ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
KEPT = {
    "type", "format", "properties", "items", "additionalProperties", "required",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
}  # fmt: skip
METADATA = {"annotations", "creationTimestamp", "finalizers", "generateName", "labels", "name", "namespace"}

Schema = dict[str, Any]


def openapi_document() -> Schema:
    with tempfile.TemporaryDirectory() as scratch:
        printed = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            cwd=scratch,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    path = Path(json.loads(printed)["Dir"]) / "api/openapi-spec/v3/api__v1_openapi.json"
    document: Schema = json.loads(path.read_text())
    return document


def translated(schema: Schema, known: Schema) -> Schema:
    if "allOf" in schema:
        return translated(schema["allOf"][0], known)
    if "$ref" in schema:
        return referred(schema["$ref"].rsplit("/", 1)[-1], known)
    result = {key: value for key, value in schema.items() if key in KEPT}
    if "properties" in result:
        result["properties"] = {name: translated(part, known) for name, part in sorted(result["properties"].items())}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = translated(result[key], known)
    return result


def referred(name: str, known: Schema) -> Schema:
    short = name.rsplit(".", 1)[-1]
    if short == "IntOrString":
        return {"x-kubernetes-int-or-string": True}
    if short == "Quantity":
        return {"x-kubernetes-int-or-string": True, "pattern": QUANTITY}
    result = translated(known[name], known)
    if short == "Time":
        result["nullable"] = True
    return result


def pod_template(document: Schema) -> Schema:
    schema = translated({"$ref": ROOT}, document["components"]["schemas"])
    metadata, spec = schema["properties"]["metadata"], schema["properties"]["spec"]
    metadata["properties"] = {key: value for key, value in metadata["properties"].items() if key in METADATA}
    spec["properties"].pop("ephemeralContainers")
    spec["properties"]["containers"]["minItems"] = 1
    spec["properties"]["imagePullSecrets"]["items"]["properties"]["name"]["default"] = ""
    schema["required"] = ["spec"]
    for group in ("containers", "initContainers"):
        container = spec["properties"][group]["items"]["properties"]
        for field in ("env", "ports"):
            make_atomic(container[field])
    return schema


def make_atomic(listing: Schema) -> None:
    """Pods accept two entries of one name here; a list of type map would refuse them."""
    listing.pop("x-kubernetes-list-map-keys")
    listing["x-kubernetes-list-type"] = "atomic"


if __name__ == "__main__":
    TARGET.write_text(json.dumps(pod_template(openapi_document()), separators=(",", ":"), sort_keys=True) + "\n")
    print(f"wrote {TARGET.name}, {TARGET.stat().st_size} bytes")
