"""Lists and watches the pods of one Job through the API server, with the pod's own service account."""

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

from paddlejob.launch.output import LaunchError, log
from paddlejob.launch.pod import Pod, parse_pod
from paddlejob.launch.settings import SERVICE_ACCOUNT

REQUEST_SECONDS = 30
WATCH_SECONDS = 60
RETRY_SECONDS = 1.0


class Forbidden(Exception):
    """The service account may not list or watch pods."""


class Unavailable(Exception):
    """No response, an invalid response, or a response that asks for a retry."""


class ResourceExpired(Exception):
    """The resource version of a watch is too old; list again."""


class ApiServer(NamedTuple):
    host: str
    port: int
    token: Path
    authority: Path

    def connect(self) -> http.client.HTTPConnection:
        context = ssl.create_default_context(cafile=str(self.authority))
        return http.client.HTTPSConnection(self.host, self.port, timeout=REQUEST_SECONDS, context=context)


def api_server(environ: Mapping[str, str], account: Path = SERVICE_ACCOUNT) -> ApiServer | None:
    """The API server named by the pod's environment; None in a pod without a service account."""
    address, token = environ.get("KUBERNETES_SERVICE_HOST"), account / "token"
    if not address or not token.exists():
        return None
    port = int(environ.get("KUBERNETES_SERVICE_PORT") or 443)
    return ApiServer(address, port, token, account / "ca.crt")


class JobPods:
    """The pods with the Job's job-name label."""

    def __init__(self, server: ApiServer, namespace: str, job: str) -> None:
        self._server = server
        self._path = f"/api/v1/namespaces/{quote(namespace)}/pods"
        self._selector = {"labelSelector": f"job-name={job}"}
        self.last_error = ""
        """Why the last request failed; empty if it succeeded."""

    def snapshots(self, deadline: float) -> Iterator[list[Pod]]:
        """Yield all pods now and after each change, until the deadline."""
        while time.monotonic() < deadline:
            try:
                found, version = self._list()
                self.last_error = ""
                yield list(found.values())
                with contextlib.suppress(ResourceExpired):
                    yield from self._watch(found, version, deadline)
            except Unavailable as error:
                if not self.last_error:
                    log(f"the API server at {self._server.host} is not responding ({error}); retrying")
                self.last_error = str(error)
            # Also after a watch: a proxy may close every watch at once.
            time.sleep(min(RETRY_SECONDS, max(0.0, deadline - time.monotonic())))

    def _list(self) -> tuple[dict[str, Pod], str]:
        connection, response = self._request(self._selector, REQUEST_SECONDS)
        try:
            answer = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()
        found = {pod["metadata"]["name"]: parse_pod(pod) for pod in answer.get("items") or []}
        return found, answer["metadata"]["resourceVersion"]

    def _watch(self, found: dict[str, Pod], version: str, deadline: float) -> Iterator[list[Pod]]:
        seconds = max(1, min(WATCH_SECONDS, int(deadline - time.monotonic())))
        query = dict(self._selector, watch="1", resourceVersion=version, timeoutSeconds=str(seconds))
        connection, response = self._request(query, seconds + REQUEST_SECONDS)
        try:
            for line in iter(response.readline, b""):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                _apply_event(found, event)
                yield list(found.values())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise Unavailable(str(error)) from None
        finally:
            connection.close()

    def _request(self, query: Mapping[str, str], seconds: float) -> tuple[http.client.HTTPConnection, Any]:
        try:
            # Both files are read each time: the kubelet replaces a token before it expires.
            token, connection = self._server.token.read_text().strip(), self._server.connect()
        except OSError as error:
            raise Unavailable(f"cannot read the files of the service account: {error}") from None
        connection.timeout = seconds
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        try:
            connection.request("GET", f"{self._path}?{urlencode(query)}", headers=headers)
            response = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unavailable(str(error) or type(error).__name__) from None
        if response.status != 200:
            message = _error_message(response)
            connection.close()
            _raise_for_status(response.status, message)
        return connection, response


def _raise_for_status(status: int, message: str) -> None:
    if status == 403:
        raise Forbidden(message)
    if status == 401:
        raise LaunchError(f"the API server does not accept this pod's token: {message}")
    if status == 410:
        raise ResourceExpired
    raise Unavailable(f"{status} {message}")


def _error_message(response: Any) -> str:
    try:
        return str(json.loads(response.read())["message"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return str(response.reason)


def _apply_event(found: dict[str, Pod], event: dict[str, Any]) -> None:
    pod = parse_pod(event["object"])
    if event["type"] == "DELETED":
        found.pop(pod.name, None)
    else:
        found[pod.name] = pod
