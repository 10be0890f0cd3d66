"""Text that tells the user how to resume a job, including one whose staged rows the target refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from dbdyno.base.errors import MoveError
from dbdyno.move.ledger.folder import Ledger

MARIADB = ("mariadb://", "mysql://")
LOST = ("57P", "08")
"""Prefixes of SQLSTATE for a lost connection."""


def resume_command(ledger: Ledger) -> str:
    """Return the command line that resumes the job."""
    into = ledger.plan.get("into")
    source = "" if ledger.plan.get("files") else " --source DSN"
    to = f" --target {'mariadb://...' if str(into['target']).startswith(MARIADB) else 'DSN'}" if into else ""
    return f"dbdyno move resume {ledger.folder}{source}{to}"


def refusal_step(ledger: Ledger, *, is_lost: bool) -> str:
    """Return the user's next step after the publishing transaction failed."""
    if is_lost:
        return f"check that the server is up; then run `{resume_command(ledger)}`, which publishes no row twice"
    named = (ledger.plan.get("into") or {}).get("rejects")
    rejects = "" if named else ", or abort the job and begin a new one with --rejects"
    return f"the rows are staged: when the table accepts them, run `{resume_command(ledger)}`{rejects}"


@contextlib.contextmanager
def resumable_errors(ledger: Ledger, where: str) -> Iterator[None]:
    """Turn errors of the publishing transaction into a `MoveError` that says how to resume the job.

    Raises:
        MoveError: The server refused the rows, or the connection was lost.
    """
    try:
        yield
    except psycopg.Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        is_lost = error.sqlstate is None or error.sqlstate.startswith(LOST)
        raise MoveError(said, where=where, next_step=refusal_step(ledger, is_lost=is_lost)) from None


@contextlib.contextmanager
def with_full_command(ledger: Ledger) -> Iterator[None]:
    """Replace "run the same command again" and similar words in errors by the full command that resumes the job."""
    try:
        yield
    except MoveError as error:
        step = error.next_step or ""
        for words in ("run the same command again", "`dbdyno move resume`"):
            step = step.replace(words, f"`{resume_command(ledger)}`")
        error.next_step = step or None
        raise
