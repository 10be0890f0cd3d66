"""The guardian's work once its parent is gone: everything back, however long it takes.

Undos are carried out last first. One that fails because the server, the network or a lock is in
the way is tried again, after 1, 2, 4 ... and then every `LONGEST_S` seconds, for `RETRY_FOR_S`;
meanwhile the others go on. What happens is told: to the journal (or stderr), at the first failure,
every hour and at the end; and in the record of what is owed, where the doctor finds it.
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
from dbdyno.bench.engine import unrestored
from dbdyno.bench.mariadb.claim import ENGINE, MariaClaim
from dbdyno.bench.postgres.claim import Claim
from dbdyno.bench.undo import Attempt, SqlUndo, Undo

RETRY_FOR_S = 24 * 3600.0
LONGEST_S = 60.0
TOLD_EVERY_S = 3600.0

Tell = Callable[[str], None]


class Claims:
    """The locks that a guardian holds, one per server and database."""

    def __init__(self) -> None:
        self._held: dict[str, Claim | MariaClaim] = {}

    def of(self, connection: Mapping[str, Any]) -> Claim | MariaClaim:
        """The claim on the server of these parameters, made where there is none."""
        names = ("engine", "host", "hostaddr", "port", "unix_socket", "dbname", "user")
        key = json.dumps([connection.get(name) for name in names])
        kind = MariaClaim if connection.get(ENGINE) == "mariadb" else Claim
        return self._held.setdefault(key, kind(connection))

    def close(self) -> None:
        """Gives all locks back."""
        for claim in self._held.values():
            claim.close()


@dataclass
class _Work:
    undo: Undo
    done: int = 0
    tries: int = 0
    told_s: float = 0.0
    run: str = ""


def _nothing() -> None:
    pass


def put_back_all(
    undos: Iterable[Undo],
    claims: Claims,
    tell: Tell,
    *,
    before_long: Callable[[], None] = _nothing,
    retry_for_s: float = RETRY_FOR_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Carries the undos out in this order; returns the problems that were left at the end. `before_long` is called
    once, before the first pause of those that may take hours."""
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
            problems = tuple(undo.carry_out())
            found = Attempt(problems, 0, bool(problems))
        elif undo.claimed:
            found = undo.attempt(done=work.done, session=claims.of(undo.connection).hold())
        else:
            found = undo.attempt(done=work.done)
    except TargetError as error:  # another run holds the settings: its turn first
        return Attempt((f"{undo.label}: {error.message}",), work.done, True)
    except Exception as error:  # the other undos must still happen
        again = type(error).__module__.startswith("psycopg")
        said = (str(error).splitlines() or [""])[0] if again else repr(error)
        return Attempt((f"{undo.label}: {said}",), work.done, again and undo_lasts(undo))
    work.done = found.done
    return found if undo_lasts(undo) else replace(found, again=False)


def undo_lasts(undo: Undo) -> bool:
    """Whether an undo is tried again for hours."""
    return bool(getattr(undo, "lasting", False))


def _note(work: _Work, found: Attempt, tell: Tell, spent_s: float, retry_for_s: float) -> None:
    """Says that it goes on: once, then every hour; and in the record, each time."""
    problem = "; ".join(found.problems)
    if work.tries == 1 or spent_s - work.told_s >= TOLD_EVERY_S:
        work.told_s = spent_s
        hours = (retry_for_s - spent_s) / 3600
        tell(f"not put back yet: {problem}; trying again for {hours:.3g} h (`dbdyno doctor` shows it)")
    record = _record_of(work.undo)
    known = unrestored.read(record)
    if record is not None and known is not None:
        with contextlib.suppress(Error):
            unrestored.write(record, replace(known, tries=work.tries, problem=problem))


def _record_of(undo: Undo) -> Path | None:
    record = getattr(undo, "record", "")
    return Path(record) if record else None


def _run_of(undo: Undo) -> str:
    known = unrestored.read(_record_of(undo))
    return known.run if known else ""


def _tell_end(work: _Work, found: Attempt, tell: Tell) -> None:
    tries = f" (try {work.tries})" if work.tries > 1 else ""
    if not found.problems:
        unrestored.mark_put_back(work.run)
        tell(f"put back: {work.undo.label}{tries}")
    else:
        given_up = "gave up: " if undo_lasts(work.undo) and found.again else ""
        tell(given_up + "; ".join(found.problems) + tries)


def error_record(error: BaseException) -> dict[str, Any]:
    """An error as the guardian's answer: sentence, place, next step."""
    if isinstance(error, Error):
        return {"problem": error.message, "where": error.where, "next_step": error.next_step}
    return {"problem": (str(error).splitlines() or [repr(error)])[0] or repr(error)}
