"""The certificate of the metrics endpoint, read again when it is renewed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from paddlejob.errors import BadInput

FILES = ("tls.crt", "tls.key")
"""As in a Secret of type kubernetes.io/tls."""
LOOK_EVERY = 60.0
log = logging.getLogger(__name__)


class Certificate:
    """`tls` serves the certificate of a directory; while `run()` runs, also a newer one."""

    def __init__(self, directory: str) -> None:
        self._files = [Path(directory, name) for name in FILES]
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._loaded = self._content()
        try:
            self._load()
        except (OSError, ValueError) as error:
            names = " and ".join(str(file) for file in self._files)
            raise BadInput(f"--metrics-certificate: {names} are not a certificate and its key: {error}") from error

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.renew()

    def renew(self) -> None:
        """Use the files from now on if they have changed; if they cannot be read, keep the certificate."""
        try:
            content = self._content()
            if content != self._loaded:
                self._load()
                self._loaded = content
                log.info("metrics: the certificate was renewed")
        except (BadInput, OSError, ValueError) as error:
            log.warning("metrics: the new certificate cannot be used, the old one stays: %s", error)

    def _load(self) -> None:
        certificate, key = self._files
        self.tls.load_cert_chain(certificate, key)

    def _content(self) -> list[bytes]:
        try:
            return [file.read_bytes() for file in self._files]
        except OSError as error:
            raise BadInput(f"--metrics-certificate: {error.filename}: {error.strerror}") from error
