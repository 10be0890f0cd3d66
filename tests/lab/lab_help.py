"""Helpers of several tests of live runs."""

from __future__ import annotations

import psycopg

TWO_ARMS = '[[arm]]\nname = "base"\n[[arm]]\nname = "other"\nsettings = {work_mem = "8MB"}\n'
RELOAD = """[[arm]]
name = "base"
[[arm]]
name = "slow writer"
settings = {wal_writer_delay = "500ms"}
"""


def reloading(lab, **more) -> str:
    plan = lab.plan(RELOAD, **more)
    path = lab.folder / plan
    path.write_text(path.read_text().replace("[workload]", "alter_system = true\n[workload]"))
    return plan


class Delay:
    """`wal_writer_delay` of a server, read repeatedly by one session."""

    def __init__(self, conn: psycopg.Connection) -> None:
        self.conn = conn

    def __call__(self) -> tuple[str, int]:
        """Return the value in effect, and the number of its lines in postgresql.auto.conf."""
        value = self.conn.execute("show wal_writer_delay").fetchone()[0]
        entries = self.conn.execute("select count(*) from pg_file_settings where name = 'wal_writer_delay'").fetchone()[
            0
        ]
        return value, entries
