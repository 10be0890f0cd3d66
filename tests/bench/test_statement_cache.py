"""The statement cache of a session: our model of it compared with what real sessions report."""

from __future__ import annotations

import time

import psycopg
import pytest

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.statement_cache import StatementCache, cache_in_log, read_session_cache

OWN = """select count(*) filter (where name = 'CachedPlanSource'), sum(total_bytes) from pg_backend_memory_contexts
where name in ('CachedPlanSource', 'CachedPlanQuery', 'CachedPlan')"""
LOG = """2026-01-01 00:00:00 UTC [7] a LOG:  level: 2; CachedPlanSource: 2048 total in 2 blocks; 8 free: select 1
2026-01-01 00:00:00 UTC [8] a LOG:  level: 2; CachedPlanSource: 2048 total in 2 blocks; 8 free: another session
2026-01-01 00:00:00 UTC [7] a LOG:  level: 3; CachedPlanQuery: 1024 total in 1 blocks; 8 free
2026-01-01 00:00:00 UTC [7] a LOG:  level: 2; index info: 1024 total in 1 blocks; 8 free
2026-01-01 00:00:00 UTC [8] a LOG:  level: 1; 89 more child contexts containing 163840 total in 147 blocks
"""
TOTAL = "2026-01-01 00:00:00 UTC [7] a LOG:  Grand total: 9000 bytes in 9 blocks; 1 free (0 chunks); 2 used\n"


@pytest.fixture(scope="module")
def engine():
    with EmbeddedPostgres() as engine:
        yield engine


def sessions(engine: EmbeddedPostgres) -> tuple[psycopg.Connection, psycopg.Connection]:
    return tuple(psycopg.connect(**engine.conninfo(), autocommit=True) for _ in range(2))


@pytest.mark.parametrize("count", [0, 1, 12])
def test_it_is_what_the_session_says_of_itself(engine, count):
    """`pg_prepared_statements` and `pg_backend_memory_contexts`, asked in the session without preparing them."""
    asked, asking = sessions(engine)
    if asking.info.server_version < 140000:
        pytest.skip("PostgreSQL 14 and later log a session's memory")
    with asked, asking:
        for number in range(count):
            asked.execute(f"prepare s{number} as select {number}, $1::int")
            asked.execute(f"execute s{number}(1)")
        assert asked.execute("select count(*) from pg_prepared_statements").fetchone() == (count,)
        statements, size = asked.execute(OWN, prepare=False).fetchone()
        kept = read_session_cache(asking, engine, asked.info.backend_pid)
        assert kept is not None and kept.statements == statements == count
        assert kept.statement_bytes == (size or 0) and kept.session_bytes > kept.statement_bytes


def test_more_statements_than_the_server_lists_are_a_lower_bound(engine):
    asked, asking = sessions(engine)
    if asking.info.server_version < 140000:
        pytest.skip("PostgreSQL 14 and later log a session's memory")
    with asked, asking:
        for number in range(150):
            asked.execute(f"prepare s{number} as select {number}")
        kept = read_session_cache(asking, engine, asked.info.backend_pid)
    assert kept is not None and not kept.whole and 90 <= kept.statements < 150


def test_a_session_that_is_gone_is_not_waited_for_without_end(engine, monkeypatch):
    monkeypatch.setattr("dbdyno.bench.postgres.statement_cache.PATIENCE_S", 0.05)
    asked, asking = sessions(engine)
    with asking:
        pid = asked.info.backend_pid
        asked.close()
        while asking.execute("select 1 from pg_stat_activity where pid = %s", [pid]).fetchone():
            time.sleep(0.005)
        assert read_session_cache(asking, engine, pid) is None


def test_only_lines_of_the_session_count_and_only_to_its_last():
    assert cache_in_log(LOG, 7) is None
    assert cache_in_log(LOG + TOTAL, 7) == StatementCache(1, 3072, 9000, whole=True)
