"""A server that calls itself MariaDB, asks for the password in every way there is, and lets everybody in: what a man in
the middle would do. It writes down what it could read of what each client gave away.
"""

from __future__ import annotations

import contextlib
import functools
import socket
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from listener import Listener
from sha2_server import OK, Talk, new_key, public_pem, xor

NATIVE, SHA2, SHA256 = b"mysql_native_password", b"caching_sha2_password", b"sha256_password"
CLEAR, OLD, DIALOG = b"mysql_clear_password", b"mysql_old_password", b"dialog"
ASKS = ("clear", "old", "dialog", "sha256", "sha256 at once", "sha256 with a key", "sha2", "file")
CHALLENGE = bytes(range(65, 85))
_key = functools.cache(new_key)


@dataclass
class HostileMariaDB(Listener):
    """Entered, it listens on 127.0.0.1:`port`. `ask` may change between clients; `certificate`: files of certificate
    and key, where it offers TLS. What it got lies in `given`: in the clear means that it can read it."""

    password: bytes
    ask: str = "clear"
    certificate: tuple[Path, Path] | None = None
    key: rsa.RSAPrivateKey = field(default_factory=_key)
    given: list[str] = field(default_factory=list)

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(10)
        with contextlib.suppress(OSError, EOFError), contextlib.closing(Talk(client)) as talk:
            self._login(talk)
            talk.send(OK)
            while (command := talk.command()) and command[:1] != b"\x01":
                # A request for a file of the client's, in the place of an answer.
                talk.send(b"\xfb/etc/passwd" if self.ask == "file" else OK)

    def _login(self, talk: Talk) -> None:
        first = {"sha2": SHA2, "sha256 at once": SHA256, "sha256 with a key": SHA256}.get(self.ask, NATIVE)
        self._read(talk.greet(CHALLENGE, first, self.certificate))
        if self.ask in ("sha2", "sha256 with a key"):
            talk.send(b"\x01\x04" if self.ask == "sha2" else b"\x01" + public_pem(self.key))
            answer = talk.receive()
            if answer == b"\x02":
                talk.send(b"\x01" + public_pem(self.key))
                answer = talk.receive()
            self._read(answer)
        other = {"clear": CLEAR, "old": OLD, "dialog": DIALOG, "sha256": SHA256}.get(self.ask)
        if other is not None:
            question = b"\x05Password: " if other == DIALOG else CHALLENGE + b"\x00"
            talk.send(b"\xfe" + other + b"\x00" + question)
            answer = talk.receive()
            if answer == b"\x01":
                talk.send(b"\x01" + public_pem(self.key))
                answer = talk.receive()
            self._read(answer)
            if other == OLD:
                self.given.append("a proof that does not hold in minutes")

    def _read(self, answer: bytes) -> None:
        """Record whether the password can be read in the client's answer."""
        if self.password in answer:
            self.given.append("the password")
        elif len(answer) == self.key.key_size // 8:
            oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
            with contextlib.suppress(ValueError):
                if self.password in xor(self.key.decrypt(answer, oaep), CHALLENGE):
                    self.given.append("the password, sealed for a key of the attacker's")
