"""Servers under power cuts: started, loaded by several sessions, and killed with all their processes."""

from __future__ import annotations

import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.embedded_server import EmbeddedServer
from dbdyno.bench.guardian import Guardian
from dbdyno.cuts.engine import BrokenEngineError, end_processes, informative_line, wait_for_cut
from dbdyno.cuts.ledger import Ledger
from dbdyno.cuts.plan import CutPlan

Server = TypeVar("Server", bound=EmbeddedServer)


class ServerCuts(ABC, Generic[Server]):
    """A server as a `CutEngine`; subclasses create it and define its sessions."""

    version = repaired = ""
    changes_least, changes_most, recovery_changes_most = 20, 3000, 100

    def __init__(self, plan: CutPlan, guardian: Guardian) -> None:
        self._plan, self._guardian = plan, guardian
        self._engine: Server | None = None
        self.folder = self.back = Path()

    @property
    def _server(self) -> Server:
        assert self._engine is not None
        return self._engine

    def _move_below(self) -> None:
        """Move the data of a server from this machine's disk to the folder below the mount."""
        self.folder = self._server.data_dir
        self.back = self.folder.with_name("back")
        self.folder.rename(self.back)
        owner = self.back.stat()
        self.folder.mkdir(mode=0o700)
        os.chown(self.folder, owner.st_uid, owner.st_gid)

    def start(self) -> None:
        """Start the server, which then recovers."""
        try:
            self._server.start()
        except TargetError as error:
            self.kill()
            raise BrokenEngineError(informative_line(self._server.log_tail())) from error

    def load(self, ledger: Ledger, is_off: Callable[[], bool]) -> float:
        """Commit in several sessions until the power is off; later acknowledgements are ignored."""
        numbers = itertools.count(max(ledger.tried, default=0) + 1)
        threads = [
            threading.Thread(target=self._session, args=(session, numbers, ledger, is_off))
            for session in range(self._plan.sessions)
        ]
        for thread in threads:
            thread.start()
        seen = wait_for_cut(is_off)
        end_processes(self.folder)
        for thread in threads:
            thread.join()
        return seen

    @abstractmethod
    def _session(self, session: int, numbers: itertools.count[int], ledger: Ledger, is_off: Callable[[], bool]) -> None:
        """Commit transactions with the next numbers until the power is off, and record them in the ledger."""

    def kill(self) -> None:
        """End all processes of the server at once, as a power cut does."""
        end_processes(self.folder)
        self._server.stop()

    def close(self) -> None:
        """Stop the server and remove its folder, which must be unmounted."""
        if self._engine is not None:
            end_processes(self.folder)
            self._engine.close()
            self._engine = None
