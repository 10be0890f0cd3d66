"""A server of the tests on 127.0.0.1: what the ones that speak a protocol badly, or only in part, have in common."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from typing import Self


class Listener(ABC):
    """Entered, it listens on 127.0.0.1:`port` and serves each client in a thread of its own."""

    port: int

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    @abstractmethod
    def _serve(self, client: socket.socket) -> None:
        """Talk to one client until it disconnects."""
