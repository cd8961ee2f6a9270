"""Which pod a request comes from: the one whose token it carries, if the pod is a replica of a job.

A token is read before it is checked, so that only tokens that name a pod of ours cost the API server a request. The pod
is looked up for every request: the token of a pod that is gone is worth nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from paddlejob import contract
from paddlejob.engine.backend import Key
from paddlejob.errors import KubeError
from paddlejob.kube.client import Client
from paddlejob.operator.informers import Informers
from paddlejob.operator.metrics.access import TOKEN_REVIEWS

REMEMBERED_SECONDS = 600.0
"""For which a token that the API server accepted is not checked again: 5,000 agents cost it 8 requests a second."""
MOST_REMEMBERED = 20_000
LONGEST_TOKEN = 8192
POD_NAME, POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"
ACCOUNT = "system:serviceaccount:"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PodIdentity:
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class Caller:
    pod: PodIdentity
    job: Key


class Denied(Exception):
    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)


class Identity:
    def __init__(self, client: Client, informers: Informers, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._informers = informers
        self._monotonic = monotonic
        self._accepted: dict[bytes, float] = {}
        """Until when each token is accepted, by its hash."""
        self._last_error = ""

    async def of(self, authorization: str) -> Caller:
        """Raises Denied."""
        scheme, _, token = authorization.partition(" ")
        pod = _claimed(token.strip()) if scheme.lower() == "bearer" else None
        if pod is None:
            raise Denied(401, f"send the token of a pod for the audience {contract.AGENT_AUDIENCE}")
        job = self._job_of(pod)
        if job is None:
            raise Denied(404, "the token is not that of a replica of a job")
        await self._check(token.strip(), pod)
        return Caller(pod, job)

    def _job_of(self, pod: PodIdentity) -> Key | None:
        found = self._informers.pods.get(pod.namespace, pod.name)
        ours = found is not None and found.value is not None and found.value.uid == pod.uid and found.owner
        return (found.namespace, found.job) if found and ours else None

    async def _check(self, token: str, pod: PodIdentity) -> None:
        digest, now = hashlib.sha256(token.encode(errors="surrogateescape")).digest(), self._monotonic()
        if self._accepted.get(digest, 0.0) > now:
            return
        try:
            reviewed = await self._review(token)
        except KubeError as error:
            self._log_once(str(error))
            raise Denied(503, f"the token cannot be checked: {error}") from error
        self._last_error = ""
        if reviewed != pod:
            raise Denied(401, "the API server does not accept the token")
        if len(self._accepted) >= MOST_REMEMBERED:
            self._accepted.clear()
        self._accepted[digest] = now + REMEMBERED_SECONDS

    def _log_once(self, error: str) -> None:
        """All agents fail alike, and none of them can say so."""
        if error != self._last_error:
            log.warning("agents: tokens cannot be checked, so none connects, and jobs restart with new pods: %s", error)
        self._last_error = error

    async def _review(self, token: str) -> PodIdentity | None:
        """The pod to which the API server issued the token for this audience; None if it did not."""
        spec = {"token": token, "audiences": [contract.AGENT_AUDIENCE]}
        body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "metadata": {}, "spec": spec}
        status = (await self._client.create(TOKEN_REVIEWS, body)).get("status") or {}
        if not status.get("authenticated") or contract.AGENT_AUDIENCE not in (status.get("audiences") or []):
            return None
        user = status.get("user") or {}
        extra, account = user.get("extra") or {}, str(user.get("username") or "")
        name, uid = (extra.get(POD_NAME) or [""])[0], (extra.get(POD_UID) or [""])[0]
        namespace = account.removeprefix(ACCOUNT).partition(":")[0] if account.startswith(ACCOUNT) else ""
        return PodIdentity(namespace, name, uid) if namespace and name and uid else None


def _claimed(token: str) -> PodIdentity | None:
    """The pod that a token claims to be of, unchecked; None if it is not the token of a pod for this audience."""
    if len(token) > LONGEST_TOKEN:
        return None
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        about = claims["kubernetes.io"]
        pod = PodIdentity(str(about["namespace"]), str(about["pod"]["name"]), str(about["pod"]["uid"]))
        return pod if contract.AGENT_AUDIENCE in claims["aud"] else None
    except (IndexError, KeyError, TypeError, ValueError, RecursionError, binascii.Error):
        return None
