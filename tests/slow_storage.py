"""A server on storage whose syncs can be made slow during a test (slow_sync.c)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import psycopg

from dbdyno.bench.engine.os_user import engine_account
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

SLOW_FOLDER = "slow"


class SlowStorage(EmbeddedPostgres):
    """Server whose syncs take the time in a file in its folder, and each of whose writes to one folder takes 1 ms."""

    def _launch(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        library = self.folder / "slow_sync.so"
        source = Path(__file__).with_name("slow_sync.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        library.chmod(0o644)
        self.delay_us(1000)
        preload = ["/usr/bin/env", f"LD_PRELOAD={library}", f"SLOW_SYNC_US={self.folder / 'sync_us'}"]
        preload.append(f"SLOW_WRITE_IN={self.folder / SLOW_FOLDER}")
        super()._launch([*preload, *command], ready)

    def delay_us(self, us: int) -> None:
        """Set the time of each sync from now on [us]."""
        path = self.folder / "sync_us"
        path.write_text(str(us))
        path.chmod(0o644)

    def make_tablespace(self, name: str) -> None:
        """Create a tablespace in the folder with slow writes."""
        account, path = engine_account(), self.folder / SLOW_FOLDER
        path.mkdir()
        os.chown(path, account.uid, account.gid)
        with psycopg.connect(**self.conninfo(), autocommit=True) as conn:
            conn.execute(f"create tablespace {name} location '{path}'")
