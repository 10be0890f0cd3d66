"""A server on a storage whose syncs become slow when a test says so (slow_sync.c)."""

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
    """A server whose syncs take as long as a file in its folder says, and writes into one folder 1 ms each."""

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
        """From now on each sync takes so long."""
        path = self.folder / "sync_us"
        path.write_text(str(us))
        path.chmod(0o644)

    def make_tablespace(self, name: str) -> None:
        """In the folder with slow writes."""
        account, path = engine_account(), self.folder / SLOW_FOLDER
        path.mkdir()
        os.chown(path, account.uid, account.gid)
        with psycopg.connect(**self.conninfo(), autocommit=True) as conn:
            conn.execute(f"create tablespace {name} location '{path}'")
