"""A server that knows `caching_sha2_password` and nothing else: MariaDB has it from 12.1 on only, and MySQL is no
package of Debian.

It is honest: it keeps what MySQL keeps (SHA-256 over SHA-256 of the password, once it has seen the password itself),
asks for the password itself until then, takes it under TLS or sealed for its RSA key, and writes down what each client
gave away. A public key that is asked for over the wire is sent, as MySQL does: `stranger` sends another's.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import socket
import ssl
import struct
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from listener import Listener

PLUGIN = b"caching_sha2_password"
TLS, LONG = 1 << 11, 1 << 9 | 1 << 13 | 1 << 15 | 1 << 17 | 1 << 18 | 1 << 19 | 1 << 20 | 1 << 24
PROVED, WHOLE, ASKS_KEY = b"\x03", b"\x04", b"\x02"
OK = b"\x00\x00\x00\x02\x00\x00\x00"
REFUSED = b"\xff\x15\x04#28000Access denied"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ right[at % len(right)] for at, a in enumerate(left))


@dataclass
class Sha2Server(Listener):
    """Server that listens on 127.0.0.1:`port` while entered. `certificate`: files of certificate and key, for TLS."""

    password: bytes
    certificate: tuple[Path, Path] | None = None
    stranger: bool = False
    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    given: list[str] = field(default_factory=list)
    kept: bytes | None = None

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(20)
        with contextlib.suppress(OSError, EOFError), contextlib.closing(Talk(client)) as talk:
            if self._login(talk):
                talk.send(OK)
                while (command := talk.command()) and command[:1] != b"\x01":
                    talk.send(OK)
            else:
                talk.send(REFUSED)

    def _login(self, talk: Talk) -> bool:
        challenge = bytes(1 + secrets.randbelow(126) for _ in range(20))
        answer = talk.greet(challenge, PLUGIN, self.certificate)
        _user, _, rest = answer[32:].partition(b"\x00")
        proof = rest[1 : 1 + rest[0]]
        if self.kept is not None and self._proves(proof, challenge):
            self.given.append("proof")
            talk.send(b"\x01" + PROVED)
            return True
        return self._whole(talk, challenge)

    def _proves(self, proof: bytes, challenge: bytes) -> bool:
        assert self.kept is not None
        return sha256(xor(proof, sha256(self.kept + challenge))) == self.kept

    def _whole(self, talk: Talk, challenge: bytes) -> bool:
        talk.send(b"\x01" + WHOLE)
        answer = talk.receive()
        if answer == ASKS_KEY and not talk.encrypted:
            self.given.append("asks for the key")
            talk.send(b"\x01" + public_pem(new_key() if self.stranger else self.key))
            answer = talk.receive()
        if talk.encrypted:
            self.given.append("password under TLS")
            password = answer
        elif len(answer) == self.key.key_size // 8:
            self.given.append("password sealed")
            oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
            try:
                password = xor(self.key.decrypt(answer, oaep), challenge)
            except ValueError:  # sealed for another key
                return False
        else:
            self.given.append("password in the clear")
            password = answer
        if password != self.password + b"\x00":
            return False
        self.kept = sha256(sha256(self.password))
        return True


class Talk:
    """Exchange of packets with one client."""

    def __init__(self, client: socket.socket) -> None:
        self._client, self._number, self.encrypted = client, 0, False

    def close(self) -> None:
        self._client.close()

    def greet(self, challenge: bytes, plugin: bytes, certificate: tuple[Path, Path] | None) -> bytes:
        """Greet the client, change to TLS if it asks for that, and return its login."""
        can = LONG | (TLS if certificate else 0)
        self.send(
            b"\x0a11.0.0-MariaDB\x00"
            + struct.pack("<I8sxH", 7, challenge[:8], can & 0xFFFF)
            + struct.pack("<BHHB10x", 0x2D, 2, can >> 16, 21)
            + challenge[8:]
            + b"\x00"
            + plugin
            + b"\x00"
        )
        answer = self.receive()
        if certificate and struct.unpack("<I", answer[:4])[0] & TLS:
            self.encrypt(certificate)
            answer = self.receive()
        return answer

    def encrypt(self, files: tuple[Path, Path]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        self._client, self.encrypted = context.wrap_socket(self._client, server_side=True), True

    def send(self, body: bytes) -> None:
        self._client.sendall(struct.pack("<I", len(body))[:3] + bytes([self._number & 0xFF]) + body)
        self._number += 1

    def receive(self) -> bytes:
        head = self._exactly(4)
        self._number = head[3] + 1
        return self._exactly(int.from_bytes(head[:3], "little"))

    def command(self) -> bytes:
        """Return the first packet of a new exchange."""
        with contextlib.suppress(EOFError):
            return self.receive()
        return b""

    def _exactly(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self._client.recv(count - len(found))
            if not part:
                raise EOFError
            found += part
        return found


@dataclass
class SigningServer(Sha2Server):
    """One that has a challenge signed, as MariaDB's `ed25519` does; passwords of 32 bytes alone, for which that is the
    standard's own signature."""

    def _whole(self, talk: Talk, challenge: bytes) -> bool:
        del challenge
        asked = secrets.token_bytes(32)
        talk.send(b"\xfeclient_ed25519\x00" + asked)
        public = ed25519.Ed25519PrivateKey.from_private_bytes(self.password).public_key()
        try:
            public.verify(talk.receive(), asked)
        except InvalidSignature:
            return False
        self.given.append("signature")
        return True
