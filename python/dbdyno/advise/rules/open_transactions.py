"""Rules on transactions that stay open: idle, long, prepared; and sessions that block a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbdyno.advise.dialect import BOTH, cancel, end_session, is_mariadb, place, source
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, duration, literal, with_noun
from dbdyno.advise.kinds import PreparedTransaction, Session
from dbdyno.advise.rule import Advice, Evidence, Rule

IDLE_S, LONG_S, PREPARED_S, WAITED_S = 60.0, 3600.0, 300.0, 1.0
_TIMEOUT = (
    "alter system set idle_in_transaction_session_timeout = '5min'  -- ends such sessions",
    "set global idle_transaction_timeout = 300  -- ends such sessions",
)
HELD_AGE = 100_000
"""Age of a vacuum horizon, in transactions begun since then; an older horizon keeps vacuum from removing rows."""


def _idle(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(Session):
        if not one.state.startswith("idle in transaction"):
            continue
        holds = one.xmin_age is not None and one.state_s >= IDLE_S
        if not (holds or one.waiters):
            continue
        yield _of_session(
            facts,
            one,
            f"process {one.pid} ({_client(one)}) has been idle in a transaction for {duration(one.state_s)}"
            + (f"; {with_noun(one.waiters)} waiting behind its locks" if one.waiters else ""),
            f"no more waits of others ({duration(one.waited_s)} so far)"
            if one.waiters
            else "vacuum can remove dead rows again; harmless if it holds no lock or snapshot",
            "-- have the application end its transaction before it waits for anything else",
            _TIMEOUT[is_mariadb(facts)],
            f"-- now: {end_session(facts, one.pid)}",
        )


def _find_long_transactions(facts: Facts) -> Iterator[Advice]:
    oldest: dict[int, Session] = {}
    for one in facts.rows_of(Session):
        # Of transactions with the same horizon only the longest is reported: the others got the horizon from it.
        if one.xmin_age is not None and (
            one.xmin_age not in oldest or one.transaction_s > oldest[one.xmin_age].transaction_s
        ):
            oldest[one.xmin_age] = one
    for age, one in sorted(oldest.items(), reverse=True):
        if not (age >= HELD_AGE or one.transaction_s >= LONG_S):
            continue
        yield _of_session(
            facts,
            one,
            f"the transaction of process {one.pid} ({_client(one)}) has been open for {duration(one.transaction_s)};"
            f" {count(age)} transactions have begun since, and vacuum keeps every row that died in them",
            "scans no longer read rows that died since then; how much that saves depends on the dead rows per page",
            "-- end it in its application, or run reports on a standby or in smaller parts",
            f"-- now: {end_session(facts, one.pid)}",
        )


def _queue(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(Session):
        if not one.waiters or one.blocked_by or one.waited_s < WAITED_S or one.state.startswith("idle in"):
            continue
        yield _of_session(
            facts,
            one,
            f"process {one.pid} ({_client(one)}) is at the head of a queue:"
            f" {with_noun(one.waiters)} waiting for its locks",
            f"{duration(one.waited_s)} of waiting so far; a waiting request for an exclusive lock "
            f"blocks all later requests",
            "-- set lock_timeout in sessions that run DDL, and try again",
            f"-- now: {cancel(facts, one.pid)}",
        )


def _find_prepared_transactions(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(PreparedTransaction):
        if one.age_s < PREPARED_S and one.xmin_age < HELD_AGE:
            continue
        yield Advice(
            f"transaction {one.name} has been prepared for {duration(one.age_s)}, neither committed nor rolled back",
            (
                Evidence("prepared for", one.age_s, "span", f"pg_prepared_xacts, {one.name}"),
                Evidence("transactions since", one.xmin_age, "count", f"pg_prepared_xacts, {one.name}"),
            ),
            "releases its locks and the xmin horizon that it holds",
            (f"-- ask its coordinator, then: commit prepared or rollback prepared {literal(one.name)}",),
            subject=one.name,
        )


def _of_session(facts: Facts, session: Session, sentence: str, expected: str, *fix: str) -> Advice:
    subject, manual = f"process {session.pid}", source(facts, "InnoDB Lock Modes; INNODB_TRX")
    return Advice(sentence, _evidence(facts, session), expected, fix, subject=subject, source=manual)


def _client(session: Session) -> str:
    return ", ".join(word for word in (session.user, session.application) if word)


def _evidence(facts: Facts, session: Session) -> tuple[Evidence, ...]:
    at, began = place(facts, "state", session.pid), place(facts, "transaction", session.pid)
    return (
        Evidence("state", session.state, "text", at),
        Evidence("transaction open for", session.transaction_s, "span", began),
        Evidence("in this state for", session.state_s, "span", at),
        Evidence("transactions since its snapshot", session.xmin_age, "count", f"{at}, backend_xmin"),
        Evidence("sessions that wait behind it", session.waiters, "count", place(facts, "blockers")),
        Evidence("they waited", session.waited_s, "span", place(facts, "waited")),
    )


def _rule(
    name: str,
    title: str,
    condition: str,
    expects: str,
    risk: str,
    more: tuple[type, Callable[[Facts], Iterator[Advice]]],
    engines: tuple[str, ...] = ("postgres",),
) -> Rule:
    kind, judge = more
    source = "PostgreSQL documentation, pg_stat_activity, Explicit Locking, Routine Vacuuming (2025)"
    refuted = "the situation is over at the next reading"
    return Rule(name, "sessions", title, (kind,), condition, expects, risk, source, refuted, judge, engines)


RULES = (
    _rule(
        "idle_in_transaction",
        "Sessions idle in a transaction",
        "a session is idle in a transaction, and either others wait for its locks or it has held a snapshot for a "
        "minute or more",
        "the waits of others, and rows that vacuum could not remove",
        "ending a session rolls back its work",
        (Session, _idle),
        BOTH,
    ),
    _rule(
        "long_transaction",
        "Transactions that hold back vacuum",
        "a transaction has held a snapshot for 100,000 transactions, or has been open for an hour",
        "dead rows that scans read",
        "ending a session rolls back its work",
        (Session, _find_long_transactions),
    ),
    _rule(
        "lock_queue",
        "The session at the head of a lock queue",
        "sessions waited a second or more in total for a session that does not wait for another",
        "the time that they wait",
        "cancelling rolls back the statement of that session",
        (Session, _queue),
        BOTH,
    ),
    _rule(
        "prepared_transaction",
        "Prepared transactions that are never finished",
        "a transaction was prepared five minutes or 100,000 transactions ago",
        "waits for its locks, and rows that vacuum could not remove",
        "the wrong decision breaks what the coordinator promised elsewhere",
        (PreparedTransaction, _find_prepared_transactions),
    ),
)
