"""The pods of one Job, from the API server, with the pod's own service account."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from paddlejob.launch.pod import Pod, read_pod
from paddlejob.launch.settings import SERVICE_ACCOUNT
from paddlejob.launch.words import LaunchError, say

ANSWER_SECONDS = 30
WATCH_SECONDS = 60
RETRY_SECONDS = 1.0


class Forbidden(Exception):
    """The service account may not list or watch pods."""


class Unavailable(Exception):
    """No answer, a broken one, or one that says to come again."""


class TooOld(Exception):
    """A watch cannot go on from where the last list was: list again."""


class ApiServer(NamedTuple):
    host: str
    port: int
    token: Path
    authority: Path

    def connect(self) -> http.client.HTTPConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection(self.host, self.port, timeout=ANSWER_SECONDS, context=context)


def api_server(environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> ApiServer | None:
    """Where the pod's environment says it is; None in a pod that has no service account."""
    address, token = environ.get("KUBERNETES_SERVICE_HOST"), account / "token"
    if not address or not token.exists():
        return None
    port = int(environ.get("KUBERNETES_SERVICE_PORT") or 443)
    return ApiServer(address, port, token, account / "ca.crt")


class JobPods:
    """The pods with the label job-name, and what becomes of them."""

    def __init__(self, server: ApiServer, namespace: str, job: str) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{quote(namespace)}/pods"
        self._selector = {"labelSelector": f"job-name={job}"}
        self.trouble = ""
        """Why the API server could not be asked the last time; empty when it could."""

    def changes(self, deadline: float) -> Iterator[list[Pod]]:
        """All pods now, and again after each change, until the deadline."""
        while time.monotonic() < deadline:
            try:
                found, version = self._list()
                self.trouble = ""
                yield list(found.values())
                with contextlib.suppress(TooOld):
                    yield from self._follow(found, version, deadline)
            except Unavailable as reason:
                if not self.trouble:
                    say(f"the API server at {self._server.host} gives no answer ({reason}); trying again")
                self.trouble = str(reason)
            # After a watch too, which something on the way may end at once each time.
            time.sleep(min(RETRY_SECONDS, max(0.0, deadline - time.monotonic())))

    def _list(self) -> tuple[dict[str, Pod], str]:
        connection, response = self._ask(self._selector, ANSWER_SECONDS)
        try:
            answer = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()
        found = {pod["metadata"]["name"]: read_pod(pod) for pod in answer.get("items") or []}
        return found, answer["metadata"]["resourceVersion"]

    def _follow(self, found: dict[str, Pod], version: str, deadline: float) -> Iterator[list[Pod]]:
        seconds = max(1, min(WATCH_SECONDS, int(deadline - time.monotonic())))
        query = dict(self._selector, watch="1", resourceVersion=version, timeoutSeconds=str(seconds))
        connection, response = self._ask(query, seconds + ANSWER_SECONDS)
        try:
            for line in iter(response.readline, b""):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                _note(found, event)
                yield list(found.values())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()

    def _ask(self, query: Mapping[str, str], seconds: float) -> tuple[http.client.HTTPConnection, Any]:
        try:
            # Both are read each time: the kubelet replaces a token before it expires.
            token, connection = self._server.token.read_text().strip(), self._server.connect()
        except OSError as error:
            raise Unavailable(f"the files of the service account cannot be read: {error}") from None
        connection.timeout = seconds
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(str(error) or type(error).__name__) from None
        if response.status != 200:
            words = _message(response)
            connection.close()
            _refuse(response.status, words)
        return connection, response


def _refuse(status: int, words: str) -> None:
    if status == 403:
        raise Forbidden(words)
    if status == 401:
        raise LaunchError(f"the API server does not accept this pod's token: {words}")
    if status == 410:
        raise TooOld
    raise Unavailable(f"{status} {words}")


def _message(response: Any) -> str:
    try:
        return str(json.loads(response.read())["message"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return str(response.reason)


def _note(found: dict[str, Pod], event: dict[str, Any]) -> None:
    pod = read_pod(event["object"])
    if event["type"] == "DELETED":
        found.pop(pod.name, None)
    else:
        found[pod.name] = pod
