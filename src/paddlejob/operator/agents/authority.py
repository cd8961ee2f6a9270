"""The certificate authority of the channel, kept in one Secret, and the serving certificates that it issues.

Agents trust the authority. Its key never leaves the Secret and the leader's memory. Serving keys are made by each
leader and never stored.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paddlejob.errors import Conflict, NotFound, NotPossible
from paddlejob.kube.client import Client
from paddlejob.kube.resource import Object, Resource
from paddlejob.operator.manifests import SECRET_NAME

SECRETS = Resource("", "v1", "secrets", kind="Secret")
LIFETIME = timedelta(days=3650)
SERVING_LIFETIME = timedelta(days=30)
RENEW_AFTER = timedelta(days=10)
CLOCKS_APART = timedelta(hours=1)
"""By which the clock of a node may be behind."""
SIGNERS = (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)
"""Kinds of the authority's key: the operator makes the first, and an administrator may have stored another."""


@dataclass(frozen=True)
class Authority:
    certificate: bytes
    key: bytes
    """Both as PEM."""


async def stored_authority(client: Client, namespace: str) -> Authority:
    """The authority in the Secret, made if there is none that can be used for another year. Raises NotPossible."""
    try:
        secret = await client.get(SECRETS, SECRET_NAME, namespace)
    except NotFound:
        raise NotPossible(
            f"agents: Secret {SECRET_NAME} does not exist in namespace {namespace}; apply the operator's manifests "
            "again (`pdj install`), or create it empty"
        ) from None
    found = _read(secret)
    if found:
        return found
    made = make_authority()
    data = {"ca.crt": base64.b64encode(made.certificate).decode(), "ca.key": base64.b64encode(made.key).decode()}
    try:
        await client.replace(SECRETS, secret | {"data": {**(secret.get("data") or {}), **data}})
    except Conflict:
        return await stored_authority(client, namespace)
    return made


def _read(secret: Object) -> Authority | None:
    data = secret.get("data") or {}
    try:
        found = Authority(base64.b64decode(data["ca.crt"]), base64.b64decode(data["ca.key"]))
        certificate = x509.load_pem_x509_certificate(found.certificate)
        key = serialization.load_pem_private_key(found.key, None)
    except (KeyError, TypeError, ValueError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, SIGNERS) or key.public_key() != certificate.public_key():
        return None
    lasts = certificate.not_valid_after_utc > datetime.now(UTC) + timedelta(days=365)
    return found if lasts else None


def make_authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("paddlejob agents")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    built = (
        _builder(name, name, key, LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Authority(_pem(built.sign(key, hashes.SHA256())), _key_pem(key))


def load_serving_certificate(tls: ssl.SSLContext, authority: Authority, host: str) -> None:
    """Have the context serve a new certificate for the host from now on."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(signer, SIGNERS)
    key = ec.generate_private_key(ec.SECP256R1())
    built = (
        _builder(_name("paddlejob operator"), issuer.subject, key, SERVING_LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    _load(tls, _pem(built.sign(signer, hashes.SHA256())) + _key_pem(key))


def _load(tls: ssl.SSLContext, pem: bytes) -> None:
    """An SSLContext reads files only; in memory, because the operator's file system is read-only."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("paddlejob-agents")
        try:
            os.write(file, pem)
            tls.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "tls.pem")
        path.touch(0o600)
        path.write_bytes(pem)
        tls.load_cert_chain(path)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_APART)
        .not_valid_after(now + lasts)
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
