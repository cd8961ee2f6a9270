"""Who speaks to a place: this machine's own files, or the driver that fsspec has for a URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from paddlejob.data.local_files import LocalFiles, is_here, local_path
from paddlejob.errors import BadInput, NotPossible, PaddleJobError

CONNECT_SECONDS = 30.0
SILENCE_SECONDS = 120.0
_WEB = ("http", "https")
_HOW_TO_GET = {
    "s3": "pip install 'paddlejob[s3]'",
    "s3a": "pip install 'paddlejob[s3]'",
    "gs": "pip install gcsfs",
    "gcs": "pip install gcsfs",
    "abfs": "pip install adlfs",
    "sftp": "pip install paramiko",
}


def filesystem(url: str) -> tuple[Any, str]:
    """The driver for a path or URL, and the path by which the driver knows it."""
    if is_here(url):
        return LocalFiles(), local_path(url)
    protocol = url.partition("://")[0]
    try:
        fs, path = _driver(protocol, url)
    except ImportError as error:
        raise BadInput(f"{url}: {_missing(protocol, url, error)}") from error
    except ValueError as error:
        raise BadInput(f"{url}: {error}; use a path or a URL that fsspec knows, such as s3://") from error
    except Exception as error:
        if protocol == "hdfs":
            raise BadInput(f"{url}: {_hdfs(url)} ({words(error)})") from error
        raise NotPossible(f"{url}: cannot be reached: {words(error)}") from error
    return fs, str(path)


def is_web(fs: Any) -> bool:
    # By name: importing the class would import aiohttp.
    return "http" in fs.protocol


@contextmanager
def reached(url: str) -> Iterator[None]:
    """Turns what a driver raises into an error of ours, save for the few that its callers know.

    Drivers raise errors of their own libraries (aiohttp, botocore, requests), which are not all OSErrors.
    """
    try:
        yield
    except (PaddleJobError, FileNotFoundError, PermissionError):
        raise
    except NotImplementedError as error:
        raise BadInput(f"{url}: can be read but not written; name another place") from error
    except Exception as error:
        raise NotPossible(f"{url}: {words(error)}; run the same command again to go on") from error


def words(error: BaseException) -> str:
    """What an error says, or its name where it says nothing."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _driver(protocol: str, url: str) -> tuple[Any, str]:
    # Imported late: it takes longer than splitting a small file.
    from fsspec.core import url_to_fs

    if protocol == "webhdfs":
        from paddlejob.data.webhdfs import CheckedWebHDFS

        return CheckedWebHDFS(**CheckedWebHDFS._get_kwargs_from_urls(url)), CheckedWebHDFS._strip_protocol(url)
    found: tuple[Any, str] = url_to_fs(url, **_options(protocol))
    return found


def _options(protocol: str) -> dict[str, Any]:
    """What a driver is to be told beside the URL, where the user has not told it otherwise.

    aiohttp ends every request after five minutes, however well it goes on: a download may take longer.
    """
    from fsspec.config import conf

    if protocol not in _WEB or "client_kwargs" in conf.get(protocol, {}):
        return {}
    from aiohttp import ClientTimeout

    patience = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    return {"client_kwargs": {"timeout": patience, "trust_env": True}}


def _missing(protocol: str, url: str, error: ImportError) -> str:
    if protocol == "hdfs":
        return _hdfs(url)
    if protocol in _HOW_TO_GET:
        return f"{protocol}:// needs a driver that is not installed; {_HOW_TO_GET[protocol]}"
    return str(error)


def _hdfs(url: str) -> str:
    cut = urlsplit(url)
    return (
        "hdfs:// needs pyarrow (pip install pyarrow) and libhdfs, of a Hadoop installation (HADOOP_HOME, CLASSPATH); "
        f"without these, use its web interface: webhdfs://{cut.hostname or 'NAMENODE'}:9870{cut.path}"
    )
