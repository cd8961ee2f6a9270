"""A certificate authority for tests, with certificates for a server and a client."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
SIGNS = x509.KeyUsage(**{use: use == "key_cert_sign" for use in USES})
"""Python 3.13 and newer demand this extension and those of the keys."""


@dataclass(frozen=True)
class Authority:
    directory: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def file(self) -> Path:
        return self.directory / "ca.crt"

    def issue(self, name: str, *dns_names: str) -> tuple[Path, Path]:
        """A certificate and a key file for `name`, good for 127.0.0.1 and the given names."""
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        names = x509.SubjectAlternativeName([*addresses, *(x509.DNSName(dns) for dns in dns_names)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = _builder(name, self.certificate.subject, key).add_extension(issuer, critical=False)
        certificate = builder.add_extension(names, critical=False).sign(self.key, hashes.SHA256())
        cert_file, key_file = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(_pem(key))
        return cert_file, key_file


def new_authority(directory: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
    certificate = (
        _builder("test authority", subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(SIGNS, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    (directory / "ca.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(directory, key, certificate)


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
