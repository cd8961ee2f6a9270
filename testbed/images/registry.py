"""An image registry that keeps its images between runs, and a client to push to it."""

from __future__ import annotations

import hashlib
import http.client
import io
from collections.abc import Sequence
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import yaml

from paddlejob.errors import NotPossible
from testbed.build.binaries import cache_directory
from testbed.images.image import MANIFEST_TYPE, Image
from testbed.process import Process


def server(enter: Sequence[str], address: str, directory: Path) -> Process:
    """Return a registry that listens on `address` (host:port) and stores images in the cache directory."""
    storage = cache_directory() / "registry"
    storage.mkdir(parents=True, exist_ok=True)
    configuration = directory / "registry.yaml"
    document = {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(storage)}, "delete": {"enabled": True}},
        "http": {"addr": address},
    }
    configuration.write_text(yaml.safe_dump(document))
    command = [*enter, "docker-registry", "serve", str(configuration)]
    return Process(command, directory / "registry.log", name="docker-registry")


class Registry:
    """A client of the registry at `port` of 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pushed: dict[str, str] = {}
        """The digest of each image pushed by this client, by name."""

    def answers(self) -> bool:
        try:
            return self._request("GET", "/v2/")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def push(self, image: Image) -> None:
        """Upload the parts of the image that the registry does not have yet."""
        for blob in image.layers:
            if not self._has(image.repository, blob.digest):
                with blob.path.open("rb") as content:
                    self._upload(image.repository, blob.digest, content, blob.size)
        config = image.config()
        digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
        if not self._has(image.repository, digest):
            self._upload(image.repository, digest, io.BytesIO(config), len(config))
        path = f"/v2/{image.repository}/manifests/{image.tag}"
        manifest = image.manifest()
        self._expect(201, "PUT", path, manifest, {"Content-Type": MANIFEST_TYPE})
        self.pushed[image.name] = f"sha256:{hashlib.sha256(manifest).hexdigest()}"

    def has(self, name: str) -> bool:
        """Whether the registry has an image of this name, such as docker.io/library/busybox:latest."""
        repository, _, tag = name.rpartition(":")
        path = f"/v2/{repository.split('/', 1)[1]}/manifests/{tag}"
        return self._request("HEAD", path, headers={"Accept": MANIFEST_TYPE})[0] == 200

    def _has(self, repository: str, digest: str) -> bool:
        return self._request("HEAD", f"/v2/{repository}/blobs/{digest}")[0] == 200

    def _upload(self, repository: str, digest: str, content: IO[bytes], size: int) -> None:
        location = self._expect(202, "POST", f"/v2/{repository}/blobs/uploads/")
        target = urlsplit(location)
        path = f"{target.path}?{target.query}&digest={digest}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        self._expect(201, "PUT", path, content, headers)

    def _expect(
        self, status: int, method: str, path: str, body: bytes | IO[bytes] = b"", headers: dict[str, str] | None = None
    ) -> str:
        got, location = self._request(method, path, body, headers)
        if got != status:
            raise NotPossible(f"the test registry answered {method} {path} with {got} instead of {status}")
        return location

    def _request(
        self, method: str, path: str, body: bytes | IO[bytes] = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers.get("Location", "")
        finally:
            connection.close()
