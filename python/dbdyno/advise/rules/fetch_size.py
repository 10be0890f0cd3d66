"""Rule: rows are fetched in small arrays, with a round trip for every few rows."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, share
from dbdyno.advise.rule import Advice, Evidence, Rule
from dbdyno.advise.traces import Traced, TracedStatement

LEAST_FETCHES, MOST_ROWS, LEAST_ROWS, WANTED, LEAST_SHARE = 20, 20.0, 2.0, 100, 0.01


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement that fetches many rows, few at a time."""
    whole = facts.row_of(Traced).response_ns
    for one in facts.rows_of(TracedStatement):
        if one.fetches < LEAST_FETCHES or not one.executions or not whole:
            continue
        a_fetch, an_execution = one.rows / one.fetches, one.rows / one.executions
        if a_fetch > MOST_ROWS or an_execution < LEAST_ROWS * max(a_fetch, 1):
            continue
        fewer = 1 - max(one.rows / WANTED, one.executions) / one.fetches
        trips = one.round_trip_ns * one.fetches / max(one.parses + one.executions + one.fetches, 1)
        saved, calls = fewer * trips / whole, fewer * one.fetch_ns / whole
        if saved < LEAST_SHARE:
            continue
        yield Advice(
            f"“{beginning(one.text)}” fetches {a_fetch:.3g} rows at a time; an execution returns {count(an_execution)}",
            (
                Evidence("fetches", one.fetches, "count", f"calls, {one.identifier}, kind fetch"),
                Evidence("rows", one.rows, "count", f"calls, {one.identifier}, rows"),
                Evidence("executions", one.executions, "count", f"calls, {one.identifier}, kind exec"),
                Evidence("time of the fetch calls", one.fetch_ns, "ns", f"calls, {one.identifier}, kind fetch"),
                Evidence("its round trips", one.round_trip_ns, "ns", "waits, SQL*Net message from client"),
            ),
            f"with {WANTED} rows at a time: {share(saved)} of the response time for saved round trips, and part of the "
            f"{share(calls)} of the fetch calls, each of which reads its block again",
            (f"-- in the client: an array or fetch size of {WANTED} (JDBC setFetchSize, OCI prefetch, arraysize)",),
            stake=min(saved + calls, 1.0),
            subject=f"statement {one.identifier}",
        )


RULE = Rule(
    name="fetch_size",
    family="trace",
    title="Rows fetched a few at a time",
    reads=(Traced, TracedStatement),
    condition="there are 20 fetches or more of 20 rows or fewer, an execution returns twice as many rows, and 100 rows "
    "at a time would save round trips worth 1 % of the time",
    expects="round trips",
    risk="the client needs memory for a hundred rows, and the first rows arrive a little later",
    source="Oracle JDBC Developer's Guide, Row Fetch Size (2025)",
    refuted="a trace with the larger fetch size takes as long",
    judge=judge,
    engines=("oracle",),
)
