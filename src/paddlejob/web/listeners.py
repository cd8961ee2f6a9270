"""The sockets of the server: both loopback addresses, or a Unix socket that only the user can connect to."""

from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

from paddlejob.errors import NotPossible

DEFAULT_PORT = 8700
BACKLOG = 128
"""So many are accepted before the first of them can be refused."""
LOOPBACKS = ("127.0.0.1", "::1")
"""`localhost` means either. Where the server had only one, another user could listen on the other."""
FREE_PORTS = (0,) * 20
"""A port that is free on one address may be in use on the other."""
ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def listen(host: str, port: int | None) -> list[socket.socket]:
    """Sockets of one port; without a port, of the default one or a free one."""
    wanted = "127.0.0.1" if host == "localhost" else host
    for candidate in (DEFAULT_PORT, *FREE_PORTS) if port is None else FREE_PORTS if port == 0 else (port,):
        try:
            return _listen(wanted, candidate)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and candidate != port:
                continue
            raise NotPossible(f"{error.strerror}; choose another --port or --host") from None
    raise NotPossible(f"no port is free on {' and '.join(LOOPBACKS)}; choose a --port or another --host")


def _listen(host: str, port: int) -> list[socket.socket]:
    first = _bind(host, port)
    if host not in LOOPBACKS:
        return [first]
    other = next(one for one in LOOPBACKS if one != host)
    try:
        return [first, _bind(other, first.getsockname()[1])]
    except OSError as error:
        if error.errno in ABSENT:
            return [first]
        first.close()
        raise


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise OSError(error.errno, f"cannot listen on {shown_host(host)}:{port}: {reason}") from None


def shown_host(host: str) -> str:
    """The host as it stands in a URL; a server that listens everywhere is reached by the name of its machine."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def listen_at(path: Path) -> socket.socket:
    """A Unix socket that only this user can connect to; it replaces one that a server has left behind."""
    try:
        _check_directory(path.parent)
        _remove_unused(path)
        listener = socket.socket(socket.AF_UNIX)
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
    except OSError as error:
        raise NotPossible(f"cannot listen on {path}: {error.strerror or error}; choose another --socket") from None
    return listener


def _check_directory(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & 0o022 and not mode & stat.S_ISVTX:
        raise OSError(errno.EPERM, f"other users may replace files in {folder}")


def _remove_unused(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise OSError(errno.EEXIST, "a file with this name exists")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        else:
            raise OSError(errno.EADDRINUSE, "a server listens there")
