"""MariaDB implementation of `UnrestoredServer`, which restores settings that runs left changed.

A setting that has one of the run's values was left changed; one that has its previous value is restored, possibly
because the server was restarted; any other value was set later by somebody else and is not touched. The value to be
sent is built from the recorded one in the same way as an arm's value: no part of the record is used as SQL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine import unrestored_settings
from dbdyno.bench.mariadb.global_settings import claim_settings, differing_values
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.settings import SettingFact, literal, read_facts, same_value
from dbdyno.bench.mariadb.undo import MariaUndo
from dbdyno.bench.postgres.leftovers import Finding, Source, State, delete_settled_records, restore_command, sources

if TYPE_CHECKING:
    from dbdyno.bench.engine.unrestored_settings import ChangedSetting


class UnrestoredMariaDB:
    """A MariaDB server on which runs may have left settings changed."""

    def __init__(self, target: MariaDB) -> None:
        self.target = target
        self.facts: dict[str, SettingFact] = {}

    def find_unrestored(self, among: Iterable[Source]) -> tuple[list[Source], list[Finding]]:
        """Return this server's records and findings; see `UnrestoredServer`."""
        with contextlib.closing(self.target.connect()) as connection:
            return self.find_unrestored_on(connection, among)

    def find_unrestored_on(self, connection: Any, among: Iterable[Source]) -> tuple[list[Source], list[Finding]]:
        """Return the same as `find_unrestored`, using a connection that is already open."""
        server = self.target.identity(connection)
        here = [one for one in among if one.record.server == server]
        found = []
        for source in here:
            facts = read_facts(connection, source.record.settings)
            self.facts |= facts
            for name, kept in source.record.settings.items():
                if (fact := facts.get(name.lower())) is not None:
                    found.append(Finding(source, fact.name, kept, fact.value, _state(fact, kept)))
        return here, found

    def restore_statement(self, finding: Finding) -> str:
        """Return the statement that restores a setting; see `UnrestoredServer`.

        Raises:
            TargetError: The recorded value cannot be set.
        """
        try:
            return f"SET GLOBAL {finding.name} = {literal(self.facts[finding.name], finding.kept.was)}"
        except ValueError as error:
            raise TargetError(
                f"{finding.kept.was!r:.80} cannot be restored: {error}", where=f"setting {finding.name}"
            ) from error

    def restore(self, findings: Sequence[Finding]) -> None:
        """Restore settings; see `UnrestoredServer`.

        Raises:
            TargetError: A setting cannot be restored, or another run holds the lock.
        """
        from dbdyno.bench.guardian import Guardian

        statements = tuple(map(self.restore_statement, findings))
        with Guardian() as guardian:
            claim_settings(self.target, guardian)
            problems = MariaUndo("restore", self.target.parameters, statements).execute()
            wanted = {one.name: one.kept.was for one in findings}
            if not problems and (wrong := differing_values(self.target, wanted)):
                problems = [f"not in effect in a new session: {wrong}"]
        if problems:
            step = "correct the cause, then run the command again"
            raise TargetError("; ".join(problems), where=self.target.safe_dsn, next_step=step)


@contextlib.contextmanager
def open_server(target: str) -> Iterator[UnrestoredMariaDB]:
    """Open the server that a connection string names.

    Raises:
        TargetError: The target is an embedded server, or the server does not answer.
    """
    if "://" not in target:
        raise TargetError(
            "an embedded server ends with its run: there are no settings to restore",
            where=target,
            next_step="name a running server: --target mariadb://user@host/db",
        )
    yield UnrestoredMariaDB(MariaDB.open(target))


def refuse_leftovers(target: MariaDB) -> None:
    """Raise `TargetError` if a killed run left a setting of this server changed; remove records of restored settings.

    The run would take the changed value for the previous one. Servers that dbdyno starts are not checked.

    Raises:
        TargetError: A run left a setting changed.
    """
    if target.is_embedded:
        return
    _, findings = UnrestoredMariaDB(target).find_unrestored(sources())
    delete_settled_records(findings)
    left = [one for one in findings if one.state == "ours" and one.source.record.state != "held"]
    if left:
        raise _leftover_error(target, left)


def _leftover_error(target: MariaDB, findings: Sequence[Finding]) -> TargetError:
    record = findings[0].source.record
    if record.state == "retrying":
        step = f"wait: its guardian (process {record.guardian['pid']}) is restoring it; then run again"
    else:
        step = f"{restore_command(record)}   (shows what it would restore, and asks)"
    said = ", ".join(one.sentence for one in findings)
    message = f"run {PurePath(record.run).name or 'unknown'} was killed and left {said}"
    return TargetError(message, where=target.safe_dsn, next_step=step)


def _state(fact: SettingFact, setting: ChangedSetting) -> State:
    if unrestored_settings.HIDDEN in (setting.was, *setting.ours):
        return "other"
    if _has_value(fact, setting.was):
        return "back"
    return "ours" if any(_has_value(fact, value) for value in setting.ours) else "other"


def _has_value(fact: SettingFact, value: str) -> bool:
    try:
        return same_value(fact, value, fact.value)
    except ValueError:  # a value of another version
        return False
