"""SQL that selects sampled sessions of an interval: active ones, those idle in a transaction, long transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

EVENT_ENGINES: dict[str, object] = {"postgres": "postgresql", "mariadb": "mariadb", "oracle": "oracle"}
STATEMENT_TYPES = {"postgres": "BIGINT", "mariadb": "VARCHAR", "oracle": "VARCHAR"}
BEGUN_US = 2_000_000
"""Resolution of a transaction's start time, in microseconds."""
MINUTE_US = 60_000_000
LONG_US = 1_000_000
"""Minimum duration of a listed transaction in microseconds."""
ACTIVE = "state in ('active', 'fastpath function call')"
TRANSACTIONS_KEPT = 40
"""Number of longest transactions that are cached for each day and hour, twice as many as are ever listed."""
_CLIENT = "kind in ('client', 'client backend', 'parallel worker')"
IDLE = f"{_CLIENT} and state like 'idle in transaction%'"


HOLDER_COLUMNS = ("kind", "state", "usename", "datname", "application", "client", "statement")
"""Columns of a transaction that holds back vacuum, from the last sample in which it did."""


class SampledTime(Protocol):
    """Interface of a time span whose samples are selected, such as an `Interval`."""

    @property
    def inside(self) -> str:
        """Return the SQL condition on `at_us` for rows within this time."""
        ...

    @property
    def own_sessions(self) -> Sequence[int]:
        """Return the sessions that took the snapshots of this time."""
        ...


def active_rows(interval: SampledTime) -> str:
    """Return the SQL condition for rows of active sessions within the interval, without dbdyno's own."""
    return f"{_CLIENT} and {ACTIVE} and {other_rows(interval)}"


def idle_rows(interval: SampledTime) -> str:
    """Return the SQL condition for rows of sessions idle in a transaction, without dbdyno's own."""
    return f"{IDLE} and {other_rows(interval)}"


def other_rows(interval: SampledTime) -> str:
    """Return the SQL condition for rows of sessions within the interval, without dbdyno's own."""
    return f"{interval.inside} and {not_own_sessions(interval)} and application is distinct from 'dbdyno snap'"


def not_own_sessions(interval: SampledTime) -> str:
    """Return the SQL condition for rows of other sessions than those that took the interval's snapshots."""
    return f"session not in ({', '.join(map(str, interval.own_sessions)) or '-1'})"


def transaction_rows(interval: SampledTime, source: str, least_us: int, kept: str = "") -> str:
    """Return a query for rows in transactions open for `least_us` or more, with their start; `kept` are conditions."""
    return f"""select *, (at_us - transaction_us) // {BEGUN_US} as begun from {source}
        where kind = 'client backend' and transaction_us >= {int(least_us)} and {interval.inside}
          and application is distinct from 'dbdyno snap'{kept}"""


def longest_transactions(interval: SampledTime, source: str, least_us: int, limit: int, kept: str = "") -> str:
    """Return the query for the longest transactions: session, start, and the longest duration seen."""
    return f"""select session, begun, max(transaction_us) as longest
        from ({transaction_rows(interval, source, least_us, kept)}) group by session, begun
        order by longest desc, session, begun limit {int(limit)}"""


def horizon_holders(interval: SampledTime, source: str, limit: int, least_us: int = LONG_US) -> str:
    """Return the query for the transactions that held back vacuum, with the age of the horizon and in how many looks.

    Snapshots inherit the horizon of the oldest transaction, so of the sessions with the oldest horizon of a look, the
    one with the longest transaction held it. Transactions shorter than `least_us` are left out.
    """
    last = ", ".join(f"arg_max({name}, at_us) as {name}" for name in HOLDER_COLUMNS)
    return f"""select session, begun, max(horizon_age) as horizon_age, count(*) as held,
          max(transaction_us) as transaction_us, {last}, max(at_us) as at_us
        from (select *, (at_us - transaction_us) // {BEGUN_US} as begun from {source}
          where horizon_age is not null and {other_rows(interval)}
          qualify row_number() over (
            partition by at_us order by horizon_age desc, transaction_us desc nulls last, session) = 1)
        where transaction_us >= {int(least_us)} or kind = 'walsender'
        group by session, begun order by horizon_age desc, session, begun limit {int(limit)}"""
