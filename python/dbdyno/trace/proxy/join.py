"""A call from both sides: how long its client waited, how long the server worked on it, and the time in between.

A session of the proxy and one of the recording are the same if they have the same server process (the proxy reads its
number when a session begins) and their times overlap. Within a session, a server call belongs to the client call during
which its middle lies. Both use the clock of the same machine, so both must have run on one machine.

The server's time begins when it has read the message and ends when it waits for the next one. The rest is the network,
the proxy, and processes waiting for a processor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.evidence.captures import FORMAT as WIRE
from dbdyno.evidence.memory import memory_connection, row_dicts
from dbdyno.evidence.run import Run
from dbdyno.evidence.trace_tables import create_views
from dbdyno.trace.record.recording import FORMAT as RECORDED

MATCHED_LEAST = 0.8
"""Minimum share of the clients' time that must be matched; below it, the page gives no answer."""
SCHEMA = 1
_PARTS = """
create table same as
select c.session as client, r.session as server, c.process
from client.sessions c join server.sessions r on r.process = c.process and c.process <> '0'
where c.first_tim < r.last_tim and r.first_tim < c.last_tim;

create table asked as
select s.server, c.* from client.calls c left join same s on s.client = c.session
where c.kind <> 'connect' and c.elapsed_ns > 0;

create table done as
select s.client, q.*, q.tim + q.elapsed_ns // 2 as middle from server.calls q join same s on s.server = q.session
where q.kind not in ('connect', 'disconnect');

create table met as
select d.call as server_call, a.call as client_call, d.elapsed_ns, d.cpu_ns
from done d asof join asked a on a.session = d.client and a.tim <= d.middle
where d.middle <= a.tim + a.elapsed_ns;

create table sides as
select a.call, a.statement, a.elapsed_ns as client_ns, sum(m.elapsed_ns)::bigint as server_ns,
       sum(m.cpu_ns)::bigint as cpu_ns
from asked a join met m on m.client_call = a.call group by all;
"""
_FACTS = """
select (select count(*) from client.sessions) as client_sessions,
       (select count(distinct client) from same) as sessions,
       (select count(*) from asked) as client_calls,
       (select coalesce(sum(elapsed_ns), 0)::bigint from asked) as client_calls_ns,
       (select count(*) from asked where server is null) as without_session,
       (select count(*) from done) as server_calls,
       (select count(*) from done where call not in (select server_call from met)) as server_unmatched,
       (select coalesce(sum(elapsed_ns), 0)::bigint from client.waits
        where think and session in (select client from same)) as think_ns,
       count(*) as calls, coalesce(sum(client_ns), 0)::bigint as client_ns,
       coalesce(sum(least(server_ns, client_ns)), 0)::bigint as server_ns,
       coalesce(sum(cpu_ns), 0)::bigint as cpu_ns, count(*) filter (server_ns > client_ns) as longer
from sides
"""
_STATEMENTS = """
select coalesce(t.text, '(no text)') as text, s.statement, count(*) as calls, sum(client_ns)::bigint as client_ns,
       sum(least(server_ns, client_ns))::bigint as server_ns,
       sum(client_ns - least(server_ns, client_ns))::bigint as between_ns, sum(cpu_ns)::bigint as cpu_ns,
       quantile_cont(client_ns, 0.5)::bigint as client_p50_ns, quantile_cont(server_ns, 0.5)::bigint as server_p50_ns,
       quantile_cont(client_ns - least(server_ns, client_ns), 0.5)::bigint as between_p50_ns
from sides s left join client.statements t on t.statement = s.statement
group by all order by client_ns desc
"""
_EVENTS = """
select event, class, count(*) as count, sum(w.elapsed_ns)::bigint as total_ns
from server.waits w join met m on m.server_call = w.call group by all order by total_ns desc
"""


class _Runs(NamedTuple):
    client: Run
    server: Run


def join_page(client: Path, server: Path) -> JsonObject:
    """Return the page that compares the calls of a proxy run with a recording of the server.

    Raises:
        TraceError: they are not a proxy run and a recording made at the same time.
    """
    runs = _Runs(_open_run(client, WIRE, "trace proxy"), _open_run(server, RECORDED, "trace record"))
    with contextlib.closing(memory_connection()) as connection:
        for name, run in zip(runs._fields, runs, strict=True):
            connection.execute(f"create schema {name}")
            create_views(connection, run, name)
        connection.execute(_PARTS)

        def rows(question: str) -> list[TableRow]:
            return row_dicts(connection.execute(question))

        [facts] = rows(_FACTS)
        if not facts["sessions"]:
            raise TraceError(
                "the two runs have no session in common: none has the same server process at the same time",
                where=f"{client} and {server}",
                next_step="run `dbdyno trace proxy` and `dbdyno trace record --exact` at the same time, on the "
                "server's machine",
            )
        statements, events = rows(_STATEMENTS), rows(_EVENTS)
    return {
        "schema": SCHEMA,
        "kind": "trace",
        "page": "join",
        "facts": {"title": f"{client.name} and {server.name}", "sessions": facts["sessions"]},
        "warnings": [{"code": "join", "text": text, "next": ""} for text in _doubts(facts)],
        "join": {**facts, "is_enough": _share(facts) >= MATCHED_LEAST},
        "answer": list(_answer(facts, events, statements)),
        "statements": statements,
        "events": events,
    }


def _open_run(folder: Path, form: str, command: str) -> Run:
    run = Run.open(folder)
    if run.manifest.to_json().get("format") != form:
        raise TraceError(
            f"is not a run of dbdyno {command}",
            where=str(folder),
            next_step="run `dbdyno trace join RUN_OF_PROXY RUN_OF_RECORD`",
        )
    if run.manifest.to_json().get("options", {}).get("mode") == "read":
        raise TraceError(
            "was recorded by reading the server's memory, which cannot distinguish short calls",
            where=str(folder),
            next_step="record with `dbdyno trace record --exact`",
        )
    return run


def _share(facts: JsonObject) -> float:
    """Return the matched share of the clients' time."""
    return facts["client_ns"] / facts["client_calls_ns"] if facts["client_calls_ns"] else 0.0


def _answer(facts: JsonObject, events: list[TableRow], statements: list[TableRow]) -> Iterator[str]:
    client_ns, server_ns = facts["client_ns"], facts["server_ns"]
    if _share(facts) < MATCHED_LEAST:
        yield (
            f"No answer: only {_share(facts):.0%} of the time that clients waited could be matched with the server's"
            f" (needed: {MATCHED_LEAST:.0%}). The tables show only the matched part."
        )
        return
    between_ns = client_ns - server_ns
    larger = "at the server" if server_ns >= between_ns else "between client and server, not in the database"
    yield (
        f"Clients waited {client_ns / 1e9:.3f} s, most of it {larger}: {server_ns / 1e9:.3f} s"
        f" ({server_ns / client_ns:.0%}) were in the server, {between_ns / 1e9:.3f} s"
        f" ({between_ns / client_ns:.0%}) between client and server (network, proxy, waiting for a processor)."
    )
    parts = [("CPU", facts["cpu_ns"]), *((event["event"], event["total_ns"]) for event in events)]
    parts = sorted((part for part in parts if part[1]), key=lambda part: -part[1])[:3]
    if parts and server_ns:
        named = ", ".join(f"{name} {time_ns / 1e9:.3f} s ({time_ns / server_ns:.0%})" for name, time_ns in parts)
        yield f"The server's part is: {named}."
    if statements:
        most = max(statements, key=lambda row: row["between_ns"])
        yield (
            f"Most of the time between client and server was spent by {most['text'][:70]!r}: "
            f"{most['between_ns'] / 1e9:.3f} s in {most['calls']:,}"
            f" calls, {most['between_p50_ns'] / 1e3:.0f} us each by the median."
        )
    yield f"Between their calls these clients thought for {facts['think_ns'] / 1e9:.3f} s."


def _doubts(facts: JsonObject) -> Iterator[str]:
    alone = facts["client_sessions"] - facts["sessions"]
    if alone:
        yield f"{alone:,} of {facts['client_sessions']:,} sessions of the proxy are missing in the recording."
    unmatched = facts["client_calls"] - facts["calls"] - facts["without_session"]
    if unmatched:
        yield f"{unmatched:,} client calls matched no server call at that time."
    if facts["server_unmatched"]:
        yield f"{facts['server_unmatched']:,} of {facts['server_calls']:,} server calls matched no client call."
    if facts["longer"]:
        yield (
            f"Of {facts['longer']:,} calls the server's time was longer than the client's (it finishes after it has "
            "answered): the client's time was used."
        )
