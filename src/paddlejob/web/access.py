"""Who may talk to the server: the secret of a session in each request, and checks of its Host and Origin."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from multidict import CIMultiDictProxy

from paddlejob.web.sessions import Sessions

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = ("GET", "HEAD")
LOGIN = "/api/session"
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Trusted types make a browser refuse any text that a script would turn into markup."""


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach a server that listens on this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class AccessControl:
    def __init__(self, host: str, sessions: Sessions | None = None) -> None:
        self.sessions = sessions or Sessions()
        self._names = LOOPBACK_NAMES if is_loopback(host) else LOOPBACK_NAMES | {host, *own_names()}
        self._any_address = not is_loopback(host)

    def accepts_host(self, header: str) -> bool:
        """A page of another site can point its own name at this machine (DNS rebinding), but not an address."""
        name = _host_name(header)
        return name in self._names or (self._any_address and _is_address(name))

    def is_same_origin(self, headers: CIMultiDictProxy[str]) -> bool:
        """Whether a request comes from a page of this server; programs other than browsers send neither header."""
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
        expected = headers.get("Host", "")
        return site in ("same-origin", "none") and origin in (None, f"http://{expected}", f"https://{expected}")

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what does not come from a page of this server that a user has opened by a link."""
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        with self.sessions.request(secret if scheme == "Bearer" else "") as has_session:
            return self._refusal(request, has_session) or await handler(request)

    def _refusal(self, request: web.Request, has_session: bool) -> web.Response | None:
        if not self.accepts_host(request.headers.get("Host", "")):
            return refuse(421, "This server answers only to the address that `pdj web` printed.")
        if request.path == "/" and request.method in SAFE_METHODS:
            return None
        if not self.is_same_origin(request.headers):
            return refuse(403, "This request comes from a page of another site.")
        if request.path.startswith("/static/"):
            return None
        if request.path != LOGIN and not has_session:
            return refuse(401, "There is no such session. Open the URL that `pdj web --url` prints.")
        if request.method not in SAFE_METHODS and request.content_type != "application/json":
            return refuse(415, "Send application/json.")
        return None


def refuse(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """For the signal on_response_prepare, so that also streams and errors carry the headers."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.pop("Server", None)


def own_names() -> set[str]:
    return {socket.gethostname().lower(), socket.getfqdn().lower()}


def _host_name(header: str) -> str:
    try:
        return (urlsplit(f"//{header}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
