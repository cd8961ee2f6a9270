"""A certificate authority for one test cluster."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and its private key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates and stores them in a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("paddlejob-testbed", "")
        signed = _builder(self._name, self._name, self._key)
        signed = signed.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pair = self._write("ca", signed, self._key)

    def issue(self, file: str, name: str, organization: str = "", hosts: Sequence[str] = ()) -> Pair:
        """Issue a certificate for a client, and for a server reached under one of `hosts`."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        unsigned = _builder(_name(name, organization), self._name, key)
        unsigned = unsigned.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            alternatives = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
            unsigned = unsigned.add_extension(alternatives, critical=False)
        return self._write(file, unsigned, key)

    def _write(self, file: str, unsigned: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> Pair:
        pair = Pair(self._directory / f"{file}.crt", self._directory / f"{file}.key")
        signed = unsigned.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )
        return pair


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # The clocks of nodes may be a day behind.
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
    )


def _name(common: str, organization: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organization:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(parts)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
