"""Lists of API objects, read over one connection: a kubectl for each of them costs more than the whole operator."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass, field

from paddlejob import contract
from testbed.controlplane import ControlPlane
from tools.chaos.jobs import Object

PREFIXES = {
    "pdj": (f"/apis/{contract.API_VERSION}", contract.PLURAL),
    "leases": ("/apis/coordination.k8s.io/v1", "leases"),
}
OUTAGE = 10.0
"""Seconds after which an API server that does not answer is taken for one without objects."""


@dataclass
class Lists:
    plane: ControlPlane
    _connection: http.client.HTTPSConnection | None = field(default=None, init=False)
    _tls: ssl.SSLContext | None = field(default=None, init=False)

    def items(self, kind: str, namespace: str = "", selector: str = "") -> list[Object]:
        """Return the objects of a kind, in all namespaces if none is given."""
        prefix, plural = PREFIXES.get(kind, ("/api/v1", kind))
        within = f"/namespaces/{namespace}" if namespace else ""
        path = f"{prefix}{within}/{plural}?labelSelector={selector.replace('=', '%3D')}"
        deadline = time.monotonic() + OUTAGE
        while (answer := self._get(path)) is None and time.monotonic() < deadline:
            time.sleep(0.3)
        found: list[Object] = json.loads(answer)["items"] if answer else []
        return found

    def _get(self, path: str) -> bytes | None:
        """Return the answer, or None if there is none or it is an error."""
        try:
            connection = self._connection = self._connection or self._connect()
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            self._drop()
            return None
        return body if response.status == 200 else None

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _connect(self) -> http.client.HTTPSConnection:
        host, port = self.plane.url.removeprefix("https://").split(":")
        if self._tls is None:
            own = self.plane.authority.issue("chaos", "chaos", "system:masters")
            self._tls = ssl.create_default_context(cafile=str(self.plane.authority.pair.certificate))
            self._tls.load_cert_chain(own.certificate, own.key)
        return http.client.HTTPSConnection(host, int(port), timeout=5, context=self._tls)
