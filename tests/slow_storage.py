"""A server on a storage whose syncs become slow when a test says so (slow_sync.c)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from dbdyno.bench.postgres.embedded import EmbeddedPostgres


class SlowStorage(EmbeddedPostgres):
    """A server whose syncs take as long as a file in its folder says."""

    def _launch(self, command: Sequence[str | Path], ready: Callable[[], bool]) -> None:
        library = self.folder / "slow_sync.so"
        source = Path(__file__).with_name("slow_sync.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        library.chmod(0o644)
        self.delay_us(1000)
        preload = ["/usr/bin/env", f"LD_PRELOAD={library}", f"SLOW_SYNC_US={self.folder / 'sync_us'}"]
        super()._launch([*preload, *command], ready)

    def delay_us(self, us: int) -> None:
        """From now on each sync takes so long."""
        path = self.folder / "sync_us"
        path.write_text(str(us))
        path.chmod(0o644)
