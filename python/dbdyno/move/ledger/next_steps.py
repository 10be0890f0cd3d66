"""How a job goes on, in words: the command, and what is kept when its rows stand staged and the target refuses them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.move.ledger.folder import Ledger

MARIADB = ("mariadb://", "mysql://")
LOST = ("57P", "08")
"""Classes of SQLSTATE of a connection that is gone."""


def command(ledger: Ledger) -> str:
    """What the user types."""
    into = ledger.plan.get("into")
    source = "" if ledger.plan.get("files") else " --source DSN"
    to = f" --target {'mariadb://...' if str(into['target']).startswith(MARIADB) else 'DSN'}" if into else ""
    return f"dbdyno move resume {ledger.folder}{source}{to}"


def after_refusal(ledger: Ledger, *, is_lost: bool) -> str:
    """What to do about a transaction that did not publish."""
    if is_lost:
        return f"see that the server is up; then `{command(ledger)}`, which publishes nothing twice"
    named = (ledger.plan.get("into") or {}).get("rejects")
    rejects = "" if named else ", or abort the job and begin one with --rejects"
    return f"the rows stand staged: when the table takes them, `{command(ledger)}`{rejects}"


@contextlib.contextmanager
def refused(ledger: Ledger, where: str) -> Iterator[None]:
    """Around the transaction that publishes staged rows: what the server says is told with how the job goes on."""
    try:
        yield
    except psycopg.Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        is_lost = error.sqlstate is None or error.sqlstate.startswith(LOST)
        raise MoveError(said, where=where, next_step=after_refusal(ledger, is_lost=is_lost)) from None


@contextlib.contextmanager
def named(ledger: Ledger) -> Iterator[None]:
    """Around the work on a job: a next step has the whole command, and never the one that began it."""
    try:
        yield
    except MoveError as error:
        step = error.next_step or ""
        for words in ("run the same command again", "`dbdyno move resume`"):
            step = step.replace(words, f"`{command(ledger)}`")
        error.next_step = step or None
        raise
