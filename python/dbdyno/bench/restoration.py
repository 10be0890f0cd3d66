"""The guardian's work after its parent has gone: carry out all undos, however long it takes.

Undos are carried out in the order in which the caller passes them (the guardian passes the last one first). An undo
that fails because of the server, the network or a lock is retried after 1, 2, 4, ... s and then every `LONGEST_S`
seconds, for at most `RETRY_FOR_S` seconds; meanwhile the other undos continue. The outcome is written to the journal
(or stderr) at the first failure, every hour and at the end. It is also written to the record of settings to be
restored, where the doctor finds it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.base.errors import Error, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine import unrestored_settings
from dbdyno.bench.mariadb.claim import ENGINE, MariaClaim
from dbdyno.bench.postgres.claim import Claim
from dbdyno.bench.undo import Attempt, SqlUndo, Undo

RETRY_FOR_S = 24 * 3600.0
LONGEST_S = 60.0
PROGRESS_EVERY_S = 3600.0

Tell = Callable[[str], None]


class Claims:
    """Locks that a guardian holds, one per server and database."""

    def __init__(self) -> None:
        self._held: dict[str, Claim | MariaClaim] = {}

    def claim_for(self, connection: Mapping[str, Any]) -> Claim | MariaClaim:
        """Return the claim for the server with these connection parameters, creating it if needed."""
        names = ("engine", "host", "hostaddr", "port", "unix_socket", "dbname", "user")
        key = json.dumps([connection.get(name) for name in names])
        kind = MariaClaim if connection.get(ENGINE) == "mariadb" else Claim
        return self._held.setdefault(key, kind(connection))

    def close(self) -> None:
        """Release all locks."""
        for claim in self._held.values():
            claim.close()


@dataclass
class _Work:
    undo: Undo
    done: int = 0
    tries: int = 0
    reported_s: float = 0.0
    run: str = ""


def _nothing() -> None:
    pass


def execute_undos(
    undos: Iterable[Undo],
    claims: Claims,
    tell: Tell,
    *,
    before_long: Callable[[], None] = _nothing,
    retry_for_s: float = RETRY_FOR_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Carry out the undos in the given order, with retries, and return the problems that remain at the end.

    Args:
        undos: The undos, in the order in which they are carried out.
        claims: Locks on servers' settings; all are released at the end.
        tell: Receives one line of text per event.
        before_long: Called once, before the first pause of retries, which may last hours.
        retry_for_s: How long failed undos are retried, in seconds.
        clock: Returns the current time in seconds.
        sleep: Sleeps for a number of seconds.
    """
    begun, pause_s = clock(), 1.0
    left = [_Work(undo, run=_run_of(undo)) for undo in undos]
    problems: list[str] = []
    while left:
        waiting = []
        for work in left:
            found = _try(work, claims)
            over = clock() - begun >= retry_for_s
            if found.again and not over:
                waiting.append(work)
                _note(work, found, tell, clock() - begun, retry_for_s)
            else:
                problems += found.problems
                _tell_end(work, found, tell)
        left = waiting
        if left:
            before_long()
            before_long = _nothing
            sleep(pause_s)
            pause_s = min(LONGEST_S, pause_s * 2)
    claims.close()
    return problems


def _try(work: _Work, claims: Claims) -> Attempt:
    work.tries += 1
    undo = work.undo
    try:
        if not isinstance(undo, SqlUndo):
            problems = tuple(undo.execute())
            found = Attempt(problems, 0, bool(problems))
        elif undo.claimed:
            found = undo.attempt(done=work.done, session=claims.claim_for(undo.connection).acquire())
        else:
            found = undo.attempt(done=work.done)
    except TargetError as error:  # another run holds the lock: wait for it
        return Attempt((f"{undo.label}: {error.message}",), work.done, True)
    except Exception as error:  # the other undos must still be carried out
        again = type(error).__module__.startswith("psycopg")
        said = (str(error).splitlines() or [""])[0] if again else repr(error)
        return Attempt((f"{undo.label}: {said}",), work.done, again and is_retried(undo))
    work.done = found.done
    return found if is_retried(undo) else replace(found, again=False)


def is_retried(undo: Undo) -> bool:
    """Return True if a failed undo is retried for hours."""
    return bool(getattr(undo, "lasting", False))


def _note(work: _Work, attempt: Attempt, tell: Tell, spent_s: float, retry_for_s: float) -> None:
    """Report that an undo will be retried: at its first failure, then every hour; update the record after each try."""
    problem = "; ".join(attempt.problems)
    if work.tries == 1 or spent_s - work.reported_s >= PROGRESS_EVERY_S:
        work.reported_s = spent_s
        hours = (retry_for_s - spent_s) / 3600
        tell(f"not restored yet: {problem}; dbdyno retries for {hours:.3g} h (`dbdyno doctor` shows it)")
    record = _record_of(work.undo)
    known = unrestored_settings.read(record)
    if record is not None and known is not None:
        with contextlib.suppress(Error):
            unrestored_settings.write(record, replace(known, tries=work.tries, problem=problem))


def _record_of(undo: Undo) -> Path | None:
    record = getattr(undo, "record", "")
    return Path(record) if record else None


def _run_of(undo: Undo) -> str:
    known = unrestored_settings.read(_record_of(undo))
    return known.run if known else ""


def _tell_end(work: _Work, attempt: Attempt, tell: Tell) -> None:
    tries = f" (try {work.tries})" if work.tries > 1 else ""
    if not attempt.problems:
        unrestored_settings.mark_restored(work.run)
        tell(f"put back: {work.undo.label}{tries}")
    else:
        given_up = "stopped: " if is_retried(work.undo) and attempt.again else ""
        tell(given_up + "; ".join(attempt.problems) + tries)


def error_record(error: BaseException) -> JsonObject:
    """Return an error as fields of the guardian's answer: `problem`; for an `Error` also `where` and `next_step`."""
    if isinstance(error, Error):
        return {"problem": error.message, "where": error.where, "next_step": error.next_step}
    return {"problem": (str(error).splitlines() or [repr(error)])[0] or repr(error)}
