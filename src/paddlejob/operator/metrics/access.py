"""Who may scrape the metrics: whoever the API server knows by a bearer token and permits to get /metrics."""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import dataclass

from paddlejob.errors import Forbidden, KubeError
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Object, Resource

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False, kind="TokenReview")
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False, kind="SubjectAccessReview"
)
PATH = "/metrics"
REMEMBERED_SECONDS = 60.0
"""Prometheus scrapes twice a minute, so half of its scrapes cost no request. A revoked token works for that long."""
MOST_REMEMBERED = 100
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Denial:
    """The response to a scraper that is not admitted."""

    code: int
    message: str


class MetricsAccess:
    """Asks the API server by a TokenReview and a SubjectAccessReview, as kube-rbac-proxy does."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._admitted: dict[bytes, float] = {}
        """Until when each token is admitted, by its hash."""
        self._last_error = ""

    async def denial(self, authorization: str) -> Denial | None:
        """Returns None if the header `Authorization` admits the scraper."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return Denial(401, "send a bearer token that the API server accepts")
        digest, now = hashlib.sha256(token.encode()).digest(), time.monotonic()
        if self._admitted.get(digest, 0.0) > now:
            return None
        try:
            denial = await self._review(token.strip())
        except KubeError as error:
            return self._unknown(error)
        self._last_error = ""
        if denial is None:
            self._remember(digest, now)
        return denial

    async def _review(self, token: str) -> Denial | None:
        status = (await self._post(TOKEN_REVIEWS, {"token": token})).get("status") or {}
        if not status.get("authenticated"):
            return Denial(401, "the API server does not accept the token")
        user = status["user"]
        who = {name: user[name] for name in ("uid", "groups", "extra") if name in user}
        asked = {"user": user["username"], **who, "nonResourceAttributes": {"path": PATH, "verb": "get"}}
        allowed = (await self._post(ACCESS_REVIEWS, asked)).get("status") or {}
        if allowed.get("allowed"):
            return None
        remedy = f"permit it by a ClusterRole with the verb get on the nonResourceURL {PATH}"
        return Denial(403, f"{user['username']} may not get {PATH}; {remedy}")

    async def _post(self, resource: Resource, spec: Object) -> Object:
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        return await self._client.create(resource, body)

    def _remember(self, digest: bytes, now: float) -> None:
        if len(self._admitted) >= MOST_REMEMBERED:
            self._admitted.clear()
        self._admitted[digest] = now + REMEMBERED_SECONDS

    def _unknown(self, error: KubeError) -> Denial:
        message = f"the token cannot be checked: {error}"
        if isinstance(error, Forbidden):
            message += "; bind the operator's service account to the ClusterRole system:auth-delegator"
        if message != self._last_error:
            log.warning("metrics: %s", message)
        self._last_error = message
        return Denial(503, message)
