"""A failing network: a relay in front of a server that resets all its connections after a number of bytes."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from typing import Self

PART_BYTES = 16 << 10


class Cut:
    """Relay that forwards connections until the server has sent a number of bytes, then resets them all; later
    connections are forwarded completely."""

    def __init__(self, host: str, port: int, after_bytes: int) -> None:
        self.server = (host, port)
        self.left = after_bytes
        self.is_cut = threading.Event()
        self.pairs: dict[socket.socket, socket.socket] = {}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.wake, self.woken = socket.socketpair()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *ending: object) -> None:
        self.wake.close()
        self.thread.join()
        self.listener.close()
        self.woken.close()
        self._drop()

    def _run(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.listener, selectors.EVENT_READ)
            waiting.register(self.woken, selectors.EVENT_READ)
            while True:
                for key, _ in waiting.select():
                    one = key.fileobj
                    if one is self.woken:
                        return
                    if one is self.listener:
                        self._accept(waiting)
                    elif isinstance(one, socket.socket) and one in self.pairs:
                        self._forward(one, waiting)

    def _accept(self, waiting: selectors.BaseSelector) -> None:
        client, _ = self.listener.accept()
        server = socket.create_connection(self.server)
        for one, other in ((client, server), (server, client)):
            self.pairs[one] = other
            waiting.register(one, selectors.EVENT_READ)

    def _forward(self, one: socket.socket, waiting: selectors.BaseSelector) -> None:
        other = self.pairs[one]
        with contextlib.suppress(OSError):
            part = one.recv(PART_BYTES)
            if one.getpeername() == self.server and not self.is_cut.is_set():
                self.left -= len(part)
            if part and (self.left > 0 or self.is_cut.is_set()):
                other.sendall(part)
                return
        if self.left <= 0 and not self.is_cut.is_set():
            self.is_cut.set()
            ended = list(self.pairs)
        else:
            ended = [one, other]
        for each in ended:
            waiting.unregister(each)
            self.pairs.pop(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            each.close()

    def _drop(self) -> None:
        for one in self.pairs:
            one.close()
