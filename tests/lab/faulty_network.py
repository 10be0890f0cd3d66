"""Network that can fail: a proxy on loopback that forwards, swallows or delays bytes, or resets connections.

with FaultyNetwork(5432) as network:
    psycopg.connect(host="127.0.0.1", port=network.port)
    network.mode = "silent"     # bytes are acknowledged and swallowed; no answer
    network.cut()               # all connections are reset
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Literal, Self

Mode = Literal["pass", "silent", "slow"]
SLOW_S = 0.05


class FaultyNetwork:
    """Proxy that forwards connections to a port of this machine, with the faults of `mode`."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.mode: Mode = "pass"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *ending: object) -> None:
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Reset every connection; new connections behave as `mode` says."""
        with self._lock:
            known, self._open = self._open, set()
        for one in known:
            with contextlib.suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def heal(self) -> None:
        """Forward again; discarded bytes and their connections are lost."""
        self.mode = "pass"
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self.upstream))
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        threading.Thread(target=self._pump, args=(client, server), daemon=True).start()
        self._pump(server, client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.mode == "silent":
                    continue
                if self.mode == "slow":
                    time.sleep(SLOW_S)
                sink.sendall(data)
        if self.mode == "silent":  # nobody hears of the end
            return
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
