"""Locks on files (flock) that several processes respect and that the kernel releases when their holder ends."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paddlejob.errors import NotPossible

NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file unless another process holds it; raises OSError where the file system has no locks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


@contextmanager
def _required(path: Path) -> Iterator[None]:
    """Where locks of files tell who runs a job, nothing can run without them."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        raise NotPossible(
            f"{path}: the file system has no locks (flock: {error.strerror}); set PADDLEJOB_STATE to a directory on "
            "another one, such as a local disk"
        ) from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it for a short time."""
    descriptor = _open(path)
    try:
        with _required(path):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock of this file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        with _required(path):
            return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


class ProcessLock:
    """A lock held for as long as a process lives: if it is free, the process has ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def adopt(self, descriptor: int) -> None:
        """Hold the lock that the parent process acquired and passed on as an open descriptor."""
        self._descriptor = descriptor

    @property
    def descriptor(self) -> int:
        """The open descriptor that holds the lock; -1 if it is not held."""
        return self._descriptor

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock, and return whether it was free. One that others share, or look at, is waited for."""
        descriptor = _open(self._path)
        with _required(self._path):
            while not try_lock(descriptor, shared=shared):
                if not try_lock(descriptor, shared=True):
                    os.close(descriptor)
                    return False
                # Two that wait would keep each other waiting if they kept it.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                time.sleep(0.01)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Close our descriptor; after a fork this leaves the lock to the child."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
