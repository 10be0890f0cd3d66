"""Certificates for a server that is attacked or that attacks: every kind that libpq distinguishes."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
PEM = serialization.Encoding.PEM


@dataclass
class Signer:
    """A certificate with its key, which can sign other certificates."""

    certificate: x509.Certificate
    key: Any

    def pem(self) -> bytes:
        return self.certificate.public_bytes(PEM)

    def key_pem(self) -> bytes:
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return bytes(self.key.private_bytes(PEM, *form))


def _key(kind: str) -> Any:
    if kind == "ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    if kind.startswith("rsa"):
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1())


def make(
    subject: str,
    issuer: Signer | None = None,
    *,
    key: str = "ecdsa",
    digest: Any = None,
    authority: bool = False,
    names: tuple[str, ...] = ("localhost",),
    days: tuple[int, int] = (-1, 30),
    usage: x509.ExtendedKeyUsage | None = None,
    pss: bool = False,
) -> Signer:
    """A certificate of `subject`, signed by `issuer` or by itself."""
    own = _key(key)
    signing = issuer.key if issuer else own
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    alternative: list[x509.GeneralName] = [x509.DNSName(n) for n in names]
    alternative.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer.certificate.subject if issuer else name)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW + days[0] * DAY)
        .not_valid_after(NOW + days[1] * DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority or names != ("localhost",):
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    if usage:
        builder = builder.add_extension(usage, critical=False)
    algorithm = None if isinstance(signing, ed25519.Ed25519PrivateKey) else (digest or hashes.SHA256())
    how = {"rsa_padding": padding.PSS(padding.MGF1(algorithm), padding.PSS.DIGEST_LENGTH)} if pss and algorithm else {}
    return Signer(builder.sign(signing, algorithm, **how), own)


def revocation_list(issuer: Signer, revoked: list[Signer], *, expired: bool = False) -> bytes:
    """Return a revocation list of `issuer` with these certificates."""
    builder = x509.CertificateRevocationListBuilder().issuer_name(issuer.certificate.subject)
    builder = builder.last_update(NOW - 3 * DAY).next_update(NOW + (-1 if expired else 30) * DAY)
    builder = builder.add_extension(x509.CRLNumber(1), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), critical=False
    )
    for one in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(one.certificate.serial_number)
        builder = builder.add_revoked_certificate(entry.revocation_date(NOW - DAY).build())
    return builder.sign(issuer.key, hashes.SHA256()).public_bytes(PEM)


def everything(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return servers' certificates by kind (chain and key); write files that a client can trust to `folder`:
    `right.crt`, `wrong.crt`, `expired.crt` (the same root, out of date), `middle.crt` (no root),
    `leaf.crt` (a self-signed server), and lists of revoked certificates."""
    root = make("root", authority=True, key="rsa")
    other = make("other root", authority=True)
    middle = make("middle", root, authority=True)
    old = make("old root", authority=True, days=(-30, -1))
    plain = make("no authority")
    client_only = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    kinds = {
        "rsa": [make("server", root, key="rsa")],
        "sha384": [make("server", root, digest=hashes.SHA384())],
        "pss": [make("server", root, pss=True)],
        "ed25519": [make("server", root, key="ed25519")],
        "ed25519-signed": [make("server", key="ed25519")],
        "self-signed": [make("server")],
        "stranger": [make("server", other)],
        "chain": [make("server", middle), middle],
        "without-middle": [make("server", middle)],
        "old-root": [make("server", old)],
        "by-no-authority": [make("server", plain)],
        "expired": [make("server", root, days=(-9, -1))],
        "for-clients": [make("server", root, usage=client_only)],
        "other-name": [make("server", root, names=("elsewhere.example",))],
        "revoked": [make("server", root)],
    }
    files = {
        "right.crt": root.pem(),
        "wrong.crt": other.pem(),
        "expired.crt": old.pem(),
        "middle.crt": middle.pem(),
        "both.crt": root.pem() + middle.pem(),
        "plain.crt": plain.pem(),
        "self.crt": kinds["self-signed"][0].pem(),
        "revoked.crl": revocation_list(root, kinds["revoked"]),
        "none.crl": revocation_list(root, []),
        "expired.crl": revocation_list(root, [], expired=True),
        "other.crl": revocation_list(other, []),
    }
    for name, pem in files.items():
        (folder / name).write_bytes(pem)
    made = {}
    for kind, chain in kinds.items():
        made[kind] = (folder / f"{kind}.server.crt", folder / f"{kind}.server.key")
        made[kind][0].write_bytes(b"".join(one.pem() for one in chain))
        made[kind][1].write_bytes(chain[0].key_pem())
    return made
