"""Account of the response time of a set of traces, divided into parts that add up to it.

    response = calls with all that they contain + waits between calls, without think time and idle waits
    database = response - round trips

Each part has an owner: a statement, or one of `HARD` (hard parses and the recursive calls below them) and `COMMIT`
(ends of transactions). A round trip is between calls; it belongs to the statement whose call it follows, so that a
statement's round trips appear and disappear with it. Time that no record covers is reported as `unexplained`; it is in
neither number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dbdyno.study.analysis.traces.turns import COMMIT, FROM_CLIENT, HARD, arrays, make_turns
from dbdyno.trace.source import FORMAT as ORACLE
from dbdyno.trace.source import Traces

ROUND_TRIP, CPU, UNACCOUNTED = "round trips", "CPU", "unaccounted"
_READ = (
    "c.session, c.call, c.kind, c.statement, c.started_ns, c.elapsed_ns, c.cpu_ns, c.rows, c.misses, c.depth, c.file,"
    " c.line, c.plan_hash, c.user_id, c.self_elapsed_ns, c.self_cpu_ns, c.self_physical_reads,"
    " c.self_consistent_reads, c.self_current_reads"
)
"""The columns of calls that a comparison reads."""
_IS_COMMIT = r"regexp_matches(coalesce(text, ''), '^\s*(commit|rollback)\b', 'i')"


_KINDS_INSIDE = """
create or replace temp table inside_kinds as
select row_number() over (order by event, class) - 1 as kind, event, class
from (select distinct event, class from waits where call is not null)
"""
_CALLS_OWNED = "select call, owner_code::integer as owner_code from owned join turn_owners using (owner)"
_WAITS_INSIDE = """
select w.call, k.kind::usmallint as kind, w.elapsed_ns as ns
from waits w join inside_kinds k on k.event is not distinct from w.event and k.class is not distinct from w.class
where w.call is not null
"""


@dataclass(frozen=True)
class Part:
    """Time of one owner in one resource: CPU, an event, the round trips, or time that is not accounted for.

    `count` is the number of waits; it is 0 for CPU and for time that is not accounted for.
    """

    owner: str
    what: str
    kind: str
    count: int
    time_ns: int


@dataclass(frozen=True)
class Statement:
    """Sums over the calls of one statement, without the recursive statements below it."""

    key: str
    depth: int
    user_id: int | None
    executions: int
    calls: int
    fetches: int
    rows: int
    gets: int
    reads: int
    hard_parses: int
    time_ns: int
    cpu_ns: int
    plans: dict[str, int] = field(default_factory=dict)
    """Time [ns] by plan hash, or by the plan's shape if the trace has no hashes."""


@dataclass(frozen=True)
class Account:
    """Account of one set of traces: its parts, its statements, and the client's counts."""

    parts: tuple[Part, ...]
    statements: dict[str, Statement]
    think_ns: int
    unexplained_ns: int
    has_waits: bool
    executions: int
    rows: int
    calls: int
    commits: int
    sessions: int

    @property
    def response_ns(self) -> int:
        """Return the response time [ns], with round trips and without think time."""
        return sum(part.time_ns for part in self.parts)

    @property
    def database_ns(self) -> int:
        """Return the response time without the round trips [ns]."""
        return sum(part.time_ns for part in self.parts if part.what != ROUND_TRIP)

    @property
    def round_trips(self) -> int:
        """Return the number of round trips to the client."""
        return sum(part.count for part in self.parts if part.what == ROUND_TRIP)

    @property
    def hard_parses(self) -> int:
        """Return the number of parses and executions that missed the library cache."""
        return sum(statement.hard_parses for statement in self.statements.values())


def account(traces: Traces) -> Account:
    """Return the account of one set of traces; call `statement_matching.match` first to match the statements."""
    _owners(traces)
    make_turns(traces)
    inside = _inside(traces)
    parts = _calls(traces, inside) + inside + _parts_between_calls(traces)
    sessions = traces.rows(
        """
        select count(*) as sessions, coalesce(sum(elapsed_ns), 0)::bigint as elapsed,
               exists(select 1 from waits) as has_waits,
               (select count(*) from transactions) as commits,
               (select coalesce(sum(elapsed_ns), 0)::bigint from turns where is_idle) as think
        from sessions
        """
    )[0]
    # On Oracle the rows of an executed PL/SQL block are those of the statements in it, which are counted themselves; on
    # PostgreSQL they are the rows that went to the client.
    is_oracle = traces.manifest.to_json().get("format", ORACLE) == ORACLE
    has_rows = "coalesce(command, 47) <> 47" if is_oracle else "true"
    client = traces.rows(
        f"""
        select count(*) filter (kind = 'exec' and not is_commit) as executions,
               count(*) filter (kind <> 'close') as calls,
               coalesce(sum(rows) filter (kind = 'fetch' or (kind = 'exec' and {has_rows})), 0)::bigint as rows
        from owned where depth = 0
        """  # noqa: S608
    )[0]
    covered = sum(part.time_ns for part in parts) + sessions["think"]
    return Account(
        tuple(parts),
        _statements(traces),
        think_ns=sessions["think"],
        unexplained_ns=sessions["elapsed"] - covered,
        has_waits=sessions["has_waits"],
        commits=sessions["commits"],
        sessions=sessions["sessions"],
        **client,
    )


def _owners(traces: Traces) -> None:
    """Create a view `owned`: each call with the key of its statement and its owner."""
    execute = traces.connection.execute
    execute("create or replace temp table hard as select call from calls where kind = 'parse' and misses > 0")
    if traces.rows("select exists(select 1 from hard) as found")[0]["found"]:
        execute(
            """
            create or replace temp table hard as
            with recursive below as (
              select call from hard
              union
              select c.call from (select call, parent from calls where parent is not null) c
              join below on c.parent = below.call)
            from below
            """
        )
    execute(
        f"create or replace temp table named as select statement, key, command, {_IS_COMMIT} as is_commit from matched"  # noqa: S608
    )
    execute(
        f"""
        create or replace temp view owned as
        select {_READ}, coalesce(m.key, c.statement, '') as key, coalesce(m.is_commit, false) as is_commit, m.command,
               case when h.call is not null then '{HARD}' when m.is_commit then '{COMMIT}'
                 else coalesce(m.key, c.statement, '') end as owner
        from calls c left join named m on m.statement = c.statement left join hard h on h.call = c.call
        """  # noqa: S608
    )


def _calls(traces: Traces, inside: list[Part]) -> list[Part]:
    """Return, by owner, CPU time and time that neither CPU nor waits inside calls explain; both can be negative."""
    waited: dict[str, int] = {}
    for part in inside:
        waited[part.owner] = waited.get(part.owner, 0) + part.time_ns
    rows = traces.rows(
        """
        select owner, sum(coalesce(self_cpu_ns, cpu_ns, 0))::bigint as cpu,
               sum(coalesce(self_elapsed_ns, elapsed_ns) - coalesce(self_cpu_ns, cpu_ns, 0))::bigint as rest
        from owned group by owner
        """
    )
    cpu = [Part(row["owner"], CPU, "CPU", 0, row["cpu"]) for row in rows]
    other = [(row["owner"], row["rest"] - waited.get(row["owner"], 0)) for row in rows]
    return cpu + [Part(owner, UNACCOUNTED, "other", 0, time_ns) for owner, time_ns in other]


def _inside(traces: Traces) -> list[Part]:
    """Return the parts of the account that are waits inside calls."""
    import numpy as np

    # Matched as arrays: a hash table of all calls takes 50 MB per million.
    traces.connection.execute(_KINDS_INSIDE)
    calls, waits = arrays(traces, _CALLS_OWNED), arrays(traces, _WAITS_INSIDE)
    if not waits["call"].size or not calls["call"].size:
        return []
    if (calls["call"][1:] < calls["call"][:-1]).any():
        order = np.argsort(calls["call"])
        calls = {name: one[order] for name, one in calls.items()}
    at = np.minimum(np.searchsorted(calls["call"], waits["call"]), calls["call"].size - 1)
    found = calls["call"][at] == waits["call"]
    matched = {
        "owner_code": calls["owner_code"][at],
        "kind": waits["kind"],
        "ns": waits["ns"],
        "found": found,
    }
    traces.connection.register("inside_rows", matched)
    rows = traces.rows(
        """
        select owner, event, coalesce(any_value(class), 'other') as kind, sum(n)::bigint as count,
               sum(ns)::bigint as time
        from (select owner_code, kind, count(*) as n, sum(ns) as ns from inside_rows where found group by all)
        join turn_owners using (owner_code) join inside_kinds using (kind) group by owner, event
        """
    )
    traces.connection.unregister("inside_rows")
    return [Part(row["owner"], row["event"], row["kind"], row["count"], row["time"]) for row in rows]


def _parts_between_calls(traces: Traces) -> list[Part]:
    """Return the parts of the account between calls: round trips, and database waits such as `log file sync`."""
    rows = traces.rows(
        f"""
        select owner, case when class = 'network' then '{ROUND_TRIP}' else event end as what,
               coalesce(any_value(class), 'other') as kind,
               case when any_value(class) = 'network' then count(*) filter (event = '{FROM_CLIENT}')
                 else count(*) end as count,
               sum(elapsed_ns)::bigint as time
        from turns where not is_idle group by all
        """  # noqa: S608
    )
    return [Part(row["owner"], row["what"], row["kind"], row["count"], row["time"]) for row in rows]


def _statements(traces: Traces) -> dict[str, Statement]:
    """Return the sums over the calls of each statement, including hard parses."""
    plans: dict[str, dict[str, int]] = {}
    for row in traces.rows(
        """
        select key, plan_hash::varchar as plan, sum(coalesce(self_elapsed_ns, elapsed_ns))::bigint as time
        from owned where plan_hash <> 0 and kind in ('exec', 'fetch') group by all order by time desc
        """
    ):
        plans.setdefault(row["key"], {})[row["plan"]] = row["time"]
    for key, shapes in _shapes(traces).items():
        plans.setdefault(key, shapes)
    rows = traces.rows(
        """
        select key, min(depth)::int as depth, any_value(user_id) as user_id,
               count(*) filter (kind = 'exec') as executions, count(*) filter (kind <> 'close') as calls,
               count(*) filter (kind = 'fetch') as fetches,
               coalesce(sum(rows) filter (kind in ('exec', 'fetch')), 0)::bigint as rows,
               sum(coalesce(self_consistent_reads, 0) + coalesce(self_current_reads, 0))::bigint as gets,
               sum(coalesce(self_physical_reads, 0))::bigint as reads,
               sum(coalesce(misses, 0))::bigint as hard_parses,
               sum(coalesce(self_elapsed_ns, elapsed_ns))::bigint as time_ns,
               sum(coalesce(self_cpu_ns, cpu_ns, 0))::bigint as cpu_ns
        from owned group by key
        """
    )
    return {row["key"]: Statement(**row, plans=plans.get(row["key"], {})) for row in rows}


def _shapes(traces: Traces) -> dict[str, dict[str, int]]:
    """Return the shapes of the recorded plans by statement; traces before 11g have no plan hash."""
    rows = traces.rows(
        """
        with one as (
          select m.key, p.file, p.cursor, p.line - p.id as begins, max(p.time_us) as us,
                 md5(string_agg(p.id || ' ' || p.parent || ' ' || p.operation, ',' order by p.id)) as shape
          from plans p join matched m using (statement) group by m.key, p.file, p.cursor, begins)
        select key, 'shape ' || shape[:8] as plan, coalesce(sum(us), 0)::bigint * 1000 as time from one group by all
        """
    )
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["key"], {})[row["plan"]] = row["time"]
    return found
