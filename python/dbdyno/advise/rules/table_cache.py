"""Rule: table_open_cache compared with tables that had to be reopened."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.engines.mariadb.parts import Status
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, share
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_OVERFLOWS, LEAST_SHARE = 1000, 0.1


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if tables are evicted and a tenth of the look-ups or more have to reopen their table."""
    status, cache = facts.row_of(Status), facts.setting("table_open_cache")
    hits, misses, thrown = (status.get(f"table_open_cache_{name}") for name in ("hits", "misses", "overflows"))
    if cache is None or not misses or hits is None or not thrown or status.span_s <= 0:
        return
    missed = misses / (hits + misses)
    if thrown < LEAST_OVERFLOWS or missed < LEAST_SHARE:
        return
    wanted = int(2 * max(cache.number, (status.get("open_table_definitions") or 0)))
    yield Advice(
        f"{share(missed)} of the look-ups find that their table is closed, {count(misses / status.span_s)} a second:"
        f" {count(thrown)} tables were evicted from a cache of {count(cache.number)}",
        (
            Evidence("table_open_cache", cache.number, "count", "global variables"),
            Evidence("found open", hits, "count", "global status, Table_open_cache_hits"),
            Evidence("opened", misses, "count", "global status, Table_open_cache_misses"),
            Evidence("evicted to make room", thrown, "count", "global status, Table_open_cache_overflows"),
            Evidence("open now", status.get("open_tables"), "count", "global status, Open_tables"),
        ),
        "the time to open a table that is defined in memory, some 10 to 100 µs each (from memory, not measured here);"
        " nobody counts it by statement",
        (
            f"set global table_open_cache = {wanted}",
            f"-- and in the server's configuration, with open_files_limit: table_open_cache = {wanted}",
        ),
        level="hint",
        subject="table_open_cache",
    )


RULE = Rule(
    name="table_cache",
    family="memory",
    title="Tables that are opened again and again",
    reads=(Setting, Status),
    condition="1,000 tables or more were evicted from the cache, and 10 % or more of the look-ups open a table",
    expects="the time to open tables",
    risk="a file handle and some memory for each table",
    source="MariaDB documentation, Optimizing table_open_cache (2025)",
    refuted="statements are as fast with the larger cache",
    judge=judge,
    engines=("mariadb",),
)
