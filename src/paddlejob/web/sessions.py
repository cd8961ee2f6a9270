"""How a browser gets in: a link that works once starts a session, whose secret the page sends with every request.

There is no cookie, because browsers send those of 127.0.0.1 to every port of it, also to servers of other users.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paddlejob.locks import ProcessLock, is_locked

SESSION_SECONDS = 12 * 3600.0
"""A session ends so long after its last request, or with the server."""
MOST_SESSIONS = 100
"""One more ends the session that was not used for the longest time."""
URL = "url"
LOCK = "lock"


@dataclass
class Session:
    used: float
    """When a request began or ended."""
    requests: int = 0
    """Those that are being served; a stream is one of them for hours."""


class Sessions:
    """Links and sessions of one server, by the hashes of their secrets."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        """Where `pdj web --url` leaves links."""
        self._links: set[str] = set()
        self._sessions: dict[str, Session] = {}
        """Longest unused first."""

    def new_token(self) -> str:
        token = secrets.token_urlsafe(32)
        self._links.add(_hash(token))
        return token

    def start(self, token: str) -> str | None:
        """The secret of a new session, if the token belongs to a link that was not used yet."""
        if not self._take(_hash(token)):
            return None
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret = secrets.token_urlsafe(32)
        self._sessions[_hash(secret)] = Session(time.monotonic())
        return secret

    @contextmanager
    def request(self, secret: str) -> Iterator[bool]:
        """Whether a session has this secret; if so it lasts as long as the request, and another while."""
        name = _hash(secret)
        session = self._sessions.pop(name, None)
        if session is None or (not session.requests and time.monotonic() - session.used > SESSION_SECONDS):
            yield False
            return
        self._sessions[name] = session
        session.used = time.monotonic()
        session.requests += 1
        try:
            yield True
        finally:
            session.used = time.monotonic()
            session.requests -= 1

    def _take(self, name: str) -> bool:
        if name in self._links:
            self._links.remove(name)
            return True
        with suppress(OSError):
            if self._folder is not None:
                (self._folder / name).unlink()
                return True
        return False


@dataclass(frozen=True)
class RunningServer:
    """A server of this user on this machine, as other processes see it."""

    folder: Path
    url: str

    def new_link(self) -> str:
        """A URL that opens the pages once."""
        token = secrets.token_urlsafe(32)
        (self.folder / _hash(token)).touch(mode=0o600)
        return link(self.url, token)


def link(url: str, token: str) -> str:
    """The token is in the fragment, which a browser does not send."""
    return f"{url}#token={token}"


@contextmanager
def announced(root: Path, url: str) -> Iterator[Path]:
    """Let `running_servers` find this process; gives the directory in which links are left."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    root.chmod(0o700)
    folder = root / f"{_host()}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    lock = ProcessLock(folder / LOCK)
    try:
        (folder / URL).write_text(url)
        lock.acquire()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()


def running_servers(root: Path) -> list[RunningServer]:
    """Those that still run; a directory that others of this machine can see may be on a network file system."""
    found = []
    for folder in sorted(root.glob(f"{_host()}-*")):
        if is_locked(folder / LOCK):
            found.append(RunningServer(folder, (folder / URL).read_text()))
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return found


def _host() -> str:
    return socket.gethostname().replace("/", "_")


def _hash(secret: str) -> str:
    """Names of files and keys of tables that tell nothing of the secret, also not by the time that a lookup takes."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
