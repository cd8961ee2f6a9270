"""HDFS over its web interface: fsspec's driver, which takes every answer for a success, made to look at the answers."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from fsspec.implementations.webhdfs import WebHDFile, WebHDFS
from requests import ConnectionError, Timeout

from paddlejob.data.drivers import CONNECT_SECONDS, SILENCE_SECONDS

_WRITTEN_AT_ONCE = 32 << 20
"""Each time is an append of its own for the name node."""


class CheckedWebHDFS(WebHDFS):  # type: ignore[misc]
    """The port is that of Hadoop 3 where the URL has none."""

    def __init__(self, host: str, port: int = 9870, **kwargs: Any) -> None:
        self._name_node = f"{host}:{port}"
        super().__init__(host, port, **kwargs)

    def _connect(self) -> None:
        super()._connect()
        ask = self.session.request

        def request(method: str, url: str, **kwargs: Any) -> Any:
            try:
                return ask(method, url, timeout=(CONNECT_SECONDS, SILENCE_SECONDS), **kwargs)
            except (ConnectionError, Timeout) as error:
                raise OSError(self._no_answer(url)) from error

        self.session.request = request

    def _no_answer(self, url: str) -> str:
        server = urlsplit(url).netloc
        if server == self._name_node:
            return f"{server} does not answer"
        return (
            f"{server}, a data node to which the name node sends us, does not answer; see that its name is known here"
        )

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super()._call(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            # What the name node refuses: it is in safe mode, on standby, or a directory is in the way.
            raise OSError(str(error)) from error

    def mv(self, path1: str, path2: str, **kwargs: Any) -> None:
        """One step for the name node, which also replaces a file. Without the option a refusal is only a `false`."""
        self._call("RENAME", method="put", path=path1, destination=path2, renameoptions="OVERWRITE")

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **kwargs: Any) -> CheckedFile:
        kwargs.pop("cache_options", None)
        block_size = block_size or (_WRITTEN_AT_ONCE if "w" in mode else self.blocksize)
        return CheckedFile(self, path, mode=mode, block_size=block_size, tempdir=self.tempdir, **kwargs)


class CheckedFile(WebHDFile):  # type: ignore[misc]
    def _fetch_range(self, start: int, end: int) -> bytes:
        start, end = max(start, 0), min(end, self.size)
        if start >= end:
            return b""
        answer = self.fs._call("OPEN", path=self.path, offset=start, length=end - start, redirect=False)
        if "Location" in answer.headers:
            answer = self.fs.session.get(self.fs._apply_proxy(answer.headers["Location"]))
            answer.raise_for_status()
        content = bytes(answer.content)
        if len(content) != end - start:
            raise OSError(f"{self.path}: {len(content)} bytes came where {end - start} were asked for")
        return content
