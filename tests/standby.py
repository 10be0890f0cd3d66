"""A standby of an embedded server, made by pg_basebackup and following over the primary's socket."""

from __future__ import annotations

from pathlib import Path

from dbdyno.bench.engine.os_user import Account, run_as
from dbdyno.bench.engine.server_paths import free_port
from dbdyno.bench.postgres.embedded import EmbeddedPostgres


class Standby(EmbeddedPostgres):
    """Standby that follows the running server `primary`; `slot` is the physical replication slot that it uses there."""

    def __init__(self, primary: EmbeddedPostgres, slot: str, **settings: str) -> None:
        super().__init__(settings={"shared_preload_libraries": "pg_stat_statements", **settings})
        self._primary, self._slot = primary, slot
        self._has_password = True  # the primary's; nothing can be written here

    @staticmethod
    def missing(primary: EmbeddedPostgres) -> str | None:
        """Return the reason why no standby of this server can be created, or None."""
        there = primary.binaries.program("pg_basebackup").exists()
        return None if there else "this server has no pg_basebackup: make setup-test"

    def _init_data(self, account: Account) -> None:
        given = self._primary.conninfo()
        where: list[str | Path] = ["-h", given["host"], "-p", given["port"], "-U", given["user"]]
        command = [self.binaries.program("pg_basebackup"), "-D", self.data_dir, "-R", "-S", self._slot]
        done = run_as(account, [*command, "--checkpoint=fast", "--no-sync", *where], cwd=self.folder)
        assert done.returncode == 0, done.stdout
        self._write("pg_hba.conf", "local all all trust\n")
        self._configure(free_port())


def open_to_standbys(primary: EmbeddedPostgres) -> None:
    """Allow a standby to connect over the socket without a password."""
    primary._write(
        "pg_hba.conf", "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
    )
    primary.reload()
