"""HDFS over WebHDFS: fsspec's driver, which treats every response as a success, with responses checked."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fsspec.implementations.webhdfs import WebHDFile, WebHDFS
from requests import ConnectionError, Timeout

from paddlejob.data.drivers.resolve import CONNECT_TIMEOUT, READ_TIMEOUT

_WRITE_BLOCK = 32 << 20
"""The name node handles each block as an append of its own."""


class CheckedWebHDFS(WebHDFS):  # type: ignore[misc]
    """WebHDFS with the port of Hadoop 3 as the default."""

    def __init__(self, host: str, port: int = 9870, **kwargs: Any) -> None:
        self._name_node = f"{host}:{port}"
        super().__init__(host, port, **kwargs)

    def _connect(self) -> None:
        super()._connect()
        send = self.session.request

        def request(method: str, url: str, **kwargs: Any) -> Any:
            try:
                return send(method, url, timeout=(CONNECT_TIMEOUT, READ_TIMEOUT), **kwargs)
            except (ConnectionError, Timeout) as error:
                raise OSError(self._no_response(url)) from error

        self.session.request = request

    def _no_response(self, url: str) -> str:
        server = urlsplit(url).netloc
        if server == self._name_node:
            return f"name node {server} does not respond"
        return (
            f"data node {server}, to which the name node redirected the request, does not respond; "
            "make sure that its host name resolves here and its port is reachable"
        )

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._call(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            # The name node rejected the request: it is in safe mode or on standby, or a directory blocks a file.
            raise OSError(str(error)) from error

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Rename atomically, replacing a file. Without the option the name node reports a failure only as `false`."""
        self._call("RENAME", method="put", path=path1, destination=path2, renameoptions="OVERWRITE")

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **kwargs: Any) -> CheckedFile:
        kwargs.pop("cache_options", None)
        block_size = block_size or (_WRITE_BLOCK if "w" in mode else self.blocksize)
        return CheckedFile(self, path, mode=mode, block_size=block_size, tempdir=self.tempdir, **kwargs)


class CheckedFile(WebHDFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(end, self.size)
        if start >= end:
            return b""
        response = self.fs._call("OPEN", path=self.path, offset=start, length=end - start, redirect=False)
        if "Location" in response.headers:
            response = self.fs.session.get(self.fs._apply_proxy(response.headers["Location"]))
            response.raise_for_status()
        content = bytes(response.content)
        if len(content) != end - start:
            raise OSError(f"{self.path}: received {len(content)} bytes instead of {end - start}")
        return content
