"""PostgreSQL implementation of `UnrestoredServer`, which restores settings that runs left changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.leftovers import Finding, Source, compare_with_server, sources_of_server
from dbdyno.bench.postgres.server import open_target
from dbdyno.bench.postgres.settings import alter_system_sql

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres


class UnrestoredPostgres:
    """A PostgreSQL server on which runs may have left settings changed."""

    def __init__(self, target: Postgres) -> None:
        self.target = target

    def find_unrestored(self, among: Iterable[Source]) -> tuple[list[Source], list[Finding]]:
        """Return this server's records and findings; see `UnrestoredServer`."""
        with contextlib.closing(self.target.connect()) as conn:
            here = sources_of_server(self.target, conn, among)
            return here, compare_with_server(conn, here)

    def restore_statement(self, finding: Finding) -> str:
        """Return the statement that restores a setting; see `UnrestoredServer`."""
        return alter_system_sql(finding.name, finding.kept.entry)

    def restore(self, findings: Sequence[Finding]) -> None:
        """Restore settings; see `UnrestoredServer`."""
        from dbdyno.bench.guardian import Guardian
        from dbdyno.bench.postgres.altered_settings import restore_sql, wait_until_in_effect

        with Guardian() as guardian:
            guardian.claim(self.target.libpq_parameters())
            statements = restore_sql({one.name: one.kept.entry for one in findings})
            problems = self.target.sql_undo("restore", statements).execute()
            if problems:
                step = "correct the cause, then run the command again"
                raise TargetError("; ".join(problems), where=self.target.safe_dsn, next_step=step)
            wait_until_in_effect(self.target, {one.name: one.kept.was for one in findings})


@contextlib.contextmanager
def open_server(target: str) -> Iterator[UnrestoredPostgres]:
    """Open the server that a connection string names.

    Raises:
        TargetError: The server does not answer.
    """
    with open_target(target) as server:
        yield UnrestoredPostgres(server)
