"""Chooses the driver for a path or URL: our own for local files, fsspec's for everything else."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from paddlejob.data.drivers.errors import describe
from paddlejob.data.drivers.local_files import LocalFiles, is_local, local_path
from paddlejob.data.drivers.urls import redact
from paddlejob.errors import BadInput, NotPossible

CONNECT_TIMEOUT = 30.0
READ_TIMEOUT = 120.0
_WEB = ("http", "https")
_INSTALL = {
    "s3": "pip install 'paddlejob[s3]'",
    "s3a": "pip install 'paddlejob[s3]'",
    "gs": "pip install gcsfs",
    "gcs": "pip install gcsfs",
    "abfs": "pip install adlfs",
    "sftp": "pip install paramiko",
}


def filesystem(url: str) -> tuple[Any, str]:
    """Return the driver for a path or URL, and the path that the driver uses for it."""
    if is_local(url):
        return LocalFiles(), local_path(url)
    protocol, shown = url.partition("://")[0], redact(url)
    try:
        fs, path = _driver(protocol, url)
    except ImportError as error:
        raise BadInput(f"{shown}: {_missing_driver(protocol, url, error)}") from error
    except ValueError as error:
        raise BadInput(
            f"{shown}: {describe(error)}; use a path or a URL that fsspec supports, such as s3://"
        ) from error
    except Exception as error:
        if protocol == "hdfs":
            raise BadInput(f"{shown}: {_hdfs_requirements(url)} ({describe(error)})") from error
        raise NotPossible(f"{shown}: connection failed: {describe(error)}") from error
    return fs, str(path)


def is_web(fs: Any) -> bool:
    # By name: importing the class would import aiohttp.
    return "http" in fs.protocol


def _driver(protocol: str, url: str) -> tuple[Any, str]:
    # Imported late: importing fsspec takes longer than splitting a small file.
    from fsspec.core import url_to_fs

    if protocol == "webhdfs":
        from paddlejob.data.drivers.webhdfs import CheckedWebHDFS

        return CheckedWebHDFS(**CheckedWebHDFS._get_kwargs_from_urls(url)), CheckedWebHDFS._strip_protocol(url)
    found: tuple[Any, str] = url_to_fs(url, **_options(protocol))
    return found


def _options(protocol: str) -> dict[str, Any]:
    """Return the options of a driver, unless the user has configured them.

    aiohttp ends every request after five minutes even while data arrives, and a download may take longer.
    """
    from fsspec.config import conf

    if protocol not in _WEB or "client_kwargs" in conf.get(protocol, {}):
        return {}
    from aiohttp import ClientTimeout

    timeout = ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=READ_TIMEOUT)
    return {"client_kwargs": {"timeout": timeout, "trust_env": True}}


def _missing_driver(protocol: str, url: str, error: ImportError) -> str:
    if protocol == "hdfs":
        return _hdfs_requirements(url)
    if protocol in _INSTALL:
        return f"the driver for {protocol}:// is not installed; run {_INSTALL[protocol]}"
    return describe(error)


def _hdfs_requirements(url: str) -> str:
    parsed = urlsplit(url)
    return (
        "hdfs:// requires pyarrow (pip install pyarrow) and libhdfs from a Hadoop installation (HADOOP_HOME, "
        f"CLASSPATH); without them, use WebHDFS: webhdfs://{parsed.hostname or 'NAMENODE'}:9870{parsed.path}"
    )
