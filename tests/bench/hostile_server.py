"""Server that makes any authentication request it likes and accepts every client, as a man in the middle would.

It speaks the protocol up to the first `ReadyForQuery` and remembers what each client gave away.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path

from listener import Listener

PASSWORD = "geheim"
ASKS = ("trust", "password", "md5", "scram", "scram-plus", "half-scram", "password-after-scram")


def frame(tag: bytes, body: bytes) -> bytes:
    return tag + struct.pack(">i", len(body) + 4) + body


def question(kind: int, data: bytes = b"") -> bytes:
    return frame(b"R", struct.pack(">i", kind) + data)


@dataclass
class HostileServer(Listener):
    """Entered, it listens on 127.0.0.1:`port`; `ask`, `tls` and `chain` may change between clients."""

    certificates: dict[str, tuple[Path, Path]]
    ask: str = "trust"
    tls: bool = True
    chain: str = "rsa"
    given: list[str] = field(default_factory=list)
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(10)
        stream = client
        try:
            code = self._greeting(stream)
            while code in (80877103, 80877104):
                if code == 80877104 or not self.tls:
                    stream.sendall(b"N")
                else:
                    stream.sendall(b"S")
                    stream = self._context().wrap_socket(stream, server_side=True, do_handshake_on_connect=False)
                    stream.do_handshake()  # type: ignore[attr-defined]
                code = self._greeting(stream)
            self._authenticate(stream)
            stream.sendall(frame(b"S", b"server_version\x0015.4\0") + frame(b"S", b"client_encoding\0UTF8\0"))
            stream.sendall(frame(b"K", bytes(7) + b"\1") + frame(b"Z", b"I"))
            while stream.recv(64):
                pass
        except (OSError, ValueError):
            pass
        finally:
            stream.close()

    def _context(self) -> ssl.SSLContext:
        chain = self.chain  # once: a client of the test before may still be served here
        if chain not in self._contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificates[chain])
            self._contexts[chain] = context
        return self._contexts[chain]

    def _authenticate(self, stream: socket.socket) -> None:
        if self.ask == "password":
            self._password(stream, question(3))
        elif self.ask == "md5":
            self._password(stream, question(5, b"salt"))
        elif self.ask != "trust":
            self._scram(stream, b"SCRAM-SHA-256-PLUS\0" if self.ask == "scram-plus" else b"")
        if self.ask == "password-after-scram":
            self._password(stream, question(3))
        stream.sendall(question(0))

    def _password(self, stream: socket.socket, asked: bytes) -> None:
        stream.sendall(asked)
        _, body = self._message(stream)
        self.given.append("cleartext" if body == PASSWORD.encode() + b"\0" else "md5")

    def _scram(self, stream: socket.socket, plus: bytes) -> None:
        stream.sendall(question(10, plus + b"SCRAM-SHA-256\0\0"))
        _, body = self._message(stream)
        _, _, first = body.partition(b"\0")
        first_bare = first[4:].split(b",", 2)[2].decode()
        nonce = first_bare.split("r=", 1)[1] + "server"
        salt, rounds = b"salt", 4096
        server_first = f"r={nonce},s={base64.b64encode(salt).decode()},i={rounds}"
        stream.sendall(question(11, server_first.encode()))
        _, final = self._message(stream)
        self.given.append("scram")
        if self.ask == "half-scram":
            return
        without_proof = final.decode().rsplit(",p=", 1)[0]
        salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, rounds)
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        signed = ",".join((first_bare, server_first, without_proof)).encode()
        signature = base64.b64encode(hmac.digest(server_key, signed, "sha256"))
        stream.sendall(question(12, b"v=" + signature))

    def _greeting(self, stream: socket.socket) -> int:
        (length,) = struct.unpack(">i", _exactly(stream, 4))
        (code,) = struct.unpack(">i", _exactly(stream, length - 4)[:4])
        return int(code)

    def _message(self, stream: socket.socket) -> tuple[bytes, bytes]:
        head = _exactly(stream, 5)
        return head[:1], _exactly(stream, struct.unpack(">i", head[1:])[0] - 4)


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            raise ValueError("the client has gone")
        data += more
    return data


class TlsFront(Listener):
    """TLS in front of a real server; the certificate that it shows, `chain`, may change between clients."""

    def __init__(self, certificates: dict[str, tuple[Path, Path]], upstream: int, chain: str) -> None:
        self.certificates, self.upstream, self.chain = certificates, upstream, chain

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self.upstream)) as server:
            if _exactly(client, 8)[4:] != struct.pack(">i", 80877103):  # SSLRequest
                return
            client.sendall(b"S")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificates[self.chain])
            with context.wrap_socket(client, server_side=True) as inner:
                threading.Thread(target=_pump, args=(server, inner), daemon=True).start()
                _pump(inner, server)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
