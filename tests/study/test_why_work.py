"""Work in Why: called the same only if it was counted, and named by index if rows by index were counted."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest

from dbdyno.evidence.run import Block
from dbdyno.study.analysis.explanation.explain import explain
from dbdyno.study.analysis.explanation.fetched_rows import SOURCE
from dbdyno.study.analysis.explanation.objects import ObjectCounters
from dbdyno.study.analysis.explanation.pair import Pair
from dbdyno.study.analysis.explanation.parts import Side
from dbdyno.study.analysis.explanation.reasons import reasons
from dbdyno.study.analysis.explanation.same_work import compare_work
from dbdyno.study.analysis.explanation.server_counters import DATABASE, GLOBAL, SESSION, ArmCounters, counters_of
from dbdyno.study.analysis.measured.measures import ArmMeasures

BLOCKS, COUNT = 8, 1000
SAME = "for the same work"
Row = tuple[str, int, str, str, str, int, float, str]


def side(name: str, cpu_us: float, *, programs: bool = False) -> Side:
    """Return an arm whose transactions use this CPU time plus 20 us elapsed time; blocks differ by 1 %."""
    count = np.full(BLOCKS, float(COUNT))
    cpu = cpu_us * 1e3 * count * np.random.default_rng(int(cpu_us)).normal(1, 0.01, BLOCKS)
    elapsed, none, waits = cpu + 20e3 * count, np.zeros(BLOCKS), np.zeros((BLOCKS, 0))
    seen = (5000, 5000.0, cpu, none, none, count)
    return Side(name, (), count, elapsed, none, count, elapsed, waits, False, *seen, programs=programs)


def totals(**values: float) -> ArmCounters:
    """Return counters of an arm, counted by its sessions."""
    return ArmCounters(values, {}, {}, COUNT, None, 10.0, dict.fromkeys(values, SESSION))


def cpu_cause(slow: ArmCounters | None, fast: ArmCounters | None, *, programs: bool = False) -> Any:
    sides = side("fast", 100, programs=programs), side("slow", 900, programs=programs)
    (cause,) = explain(*sides, level=0.95, arm=1, counts=(fast, slow)).causes
    assert cause.code == "cpu"
    return cause


@pytest.mark.parametrize("counts", [(None, None), (totals(rows_read=20), None), (None, totals(rows_read=20))])
def test_work_that_was_not_counted_of_both_arms_is_never_the_same(
    counts: tuple[ArmCounters | None, ArmCounters | None],
):
    cause = cpu_cause(*counts)
    assert cause.sentence == "CPU of the server's sessions; work was not counted"


def test_counters_that_count_no_work_do_not_make_it_the_same():
    """Of a WAL, or checkpoints, nobody knows how much was read."""
    assert (
        compare_work(Pair("b", "a", (totals(wal_bytes=9.0), totals(wal_bytes=9.0)))).words == "; work was not counted"
    )


def test_counters_that_came_too_late_for_their_turns_do_not_make_it_the_same():
    """PostgreSQL's sessions hand on what they counted once a second: of turns of 0.4 s all counters were 0."""
    nothing = {"rows_read": 0.0, "blocks_hit": 0.0, "blocks_read": 0.0, "transactions": 0.0}
    seen = nothing | {"rows_read": 20.0, "transactions": 0.9}
    for values, stretch_s, words in ((nothing, 9.0, False), (seen, 0.5, False), (seen, 2.0, True)):
        own = ArmCounters(values, {}, {}, COUNT, None, 10.0, dict.fromkeys(values, DATABASE), stretch_s)
        assert (compare_work(Pair("b", "a", (own, own))).words == f", {SAME}") == words


def test_what_programs_do_is_not_counted():
    assert cpu_cause(None, None, programs=True).sentence == "CPU of the programs; work was not counted"


def test_work_that_was_counted_alike_is_the_same_and_its_figures_stand_beside_it():
    cause = cpu_cause(totals(rows_read=20.0, rows_written=0.0), totals(rows_read=20.2, rows_written=0.0))
    assert cause.sentence == f"CPU of the server's sessions, {SAME}"
    assert cause.evidence[-1] == "a transaction with slow and fast: 20 and 20.2 rows read (metrics: session status)"


@pytest.mark.parametrize(
    ("slow", "fast", "words"),
    [
        ({"rows_read": 24.0}, {"rows_read": 20.0}, "24 rows read instead of 20"),
        ({"rows_read": 20.0}, {"rows_read": 24.0}, "20 rows read instead of 24"),
        ({"rows_read": 1.0, "rows_sorted": 9.0}, {"rows_read": 1.0, "rows_sorted": 0.0}, "9 rows sorted instead of 0"),
        ({"rows_written": 3.0}, {"rows_written": 1.0}, "3 rows written instead of 1"),
        ({"rows_temporary": 40.0}, {"rows_temporary": 0.0}, "40 rows inserted into temporary tables instead of 0"),
        ({"blocks_asked": 7.0}, {"blocks_asked": 6.0}, "7 blocks touched instead of 6"),
    ],
)
def test_work_that_differs_too_little_to_be_the_cause_is_told_with_its_figures(
    slow: dict[str, float], fast: dict[str, float], words: str
):
    sentence = cpu_cause(totals(**slow), totals(**fast)).sentence
    assert sentence == f"CPU of the server's sessions; work differs: {words} a transaction"


def test_of_one_arm_nothing_is_said_of_work():
    (cause,) = explain(None, side("a", 900), level=0.95, arm=0).causes
    assert cause.sentence == "CPU of the server's sessions"


def test_rows_that_one_arm_reads_by_full_scan_are_named_where_no_table_is_known():
    slow, fast = totals(rows_read=100_001, rows_scanned=100_001), totals(rows_read=21, rows_scanned=0)
    [(_, reason)] = reasons(Pair("ignored", "used", (slow, fast), amount_ns=6e6))
    assert reason.code == "work" and reason.evidence == ("metrics: session status",)
    assert "100,001 rows read instead of 21, of these 100,001 instead of 0 by full scan (Handler_read" in reason.words


def by_index(scanned: float, *, indexes: int = 2, **used: float) -> ArmCounters:
    """An arm that reads a table `t` without an index, and by indexes."""
    table = ObjectCounters({"rows_scanned": scanned, "rows_by_index": sum(used.values())}, {"indexes": float(indexes)})
    own = {f"shop/t/{name}": ObjectCounters({"rows_by_index": rows}) for name, rows in used.items()}
    rows = scanned + sum(used.values())
    return ArmCounters({"rows_read": rows}, {"shop/t": table}, own, COUNT, None, 10.0, {"tables": SOURCE})


def first(slow: ArmCounters, fast: ArmCounters) -> Any:
    return reasons(Pair("slow", "fast", (slow, fast), amount_ns=6e6))[0][1]


def test_an_index_that_is_there_and_not_used_is_named_and_one_that_is_not_there():
    fast = by_index(0, by_cust=20, by_date=0)
    unused = first(by_index(100_000, by_cust=0, by_date=0), fast)
    assert (unused.code, unused.about) == ("plan", "shop.t")
    assert "with the same indexes: index by_cust is not used, a transaction reads 100,000 rows by full" in unused.words
    gone = first(by_index(100_000, indexes=1, by_date=0), fast)
    assert (gone.code, gone.about) == ("index", "by_cust")
    assert gone.words.startswith("index by_cust on shop.t is not there with slow: a transaction reads 100,000 rows by ")
    assert gone.evidence[0].endswith(f"of these 0 by an index instead of 20 (metrics: {SOURCE})")


def test_another_index_that_reads_more_rows_is_named():
    found = first(by_index(0, by_cust=0, by_date=60_000), by_index(0, by_cust=20, by_date=0))
    assert "index by_cust is not used, a transaction reads 60,000 rows by index by_date instead of 0" in found.words


def test_more_rows_of_the_same_way_are_no_other_plan():
    """The table grew, or is scanned more often: rows alone do not say which."""
    assert first(by_index(100_000, by_cust=0), by_index(50_000, by_cust=0)).code == "work"


def evidence(*rows: Row) -> Any:
    """Return a connection with a run's metrics."""
    connection = duckdb.connect()
    connection.execute(
        "create table rows_of (arm varchar, block int, source varchar, object varchar, metric varchar, at_ns bigint,"
        " value double, kind varchar)"
    )
    connection.executemany("insert into rows_of values (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.execute("create view metrics as from rows_of")
    return connection


def row(source: str, thing: str, metric: str, at: int, value: float, *, arm: str = "", block: int = 1) -> Row:
    return (arm, block, source, thing, metric, at, value, "counter")


def block(index: int, kind: str = "measure", transactions: int = 10) -> Block:
    report = {"arms": [{"arm": number, "transactions": transactions} for number in (0, 1)]}
    return Block(index, kind, 0, 1, 0, [], [], report, {})


def arm_of(name: str, number: int) -> ArmMeasures:
    return ArmMeasures(name, name, 1, [block(1)], [], {}, number=number)


def sessions(arm: str, session: str, rows: float, *, metric: str = "handler_read_next") -> list[Row]:
    """The two readings of a session's status in a block of slices: it had read 1,000 rows before."""
    return [row(SESSION, session, metric, at, 1000 + at * rows, arm=arm) for at in (0, 1)]


def test_what_sessions_did_is_their_arms_own_in_slices_and_what_all_did_is_nobodys():
    shared = [row(GLOBAL, "", "handler_read_next", at, at * 9e9) for at in (0, 1)]
    connection = evidence(*shared, *sessions("a", "7", 200), *sessions("a", "8", 100), *sessions("b", "9", 50))
    one, two = (counters_of(connection, arm_of(name, at), alone=False) for at, name in enumerate("ab"))
    assert one and two
    assert (one.per_transaction("rows_read"), two.per_transaction("rows_read")) == (30.0, 5.0), "rows a transaction"
    assert one.blocks is None and one.sources("rows_read") == "metrics: session status"
    assert counters_of(evidence(*shared), arm_of("a", 0), alone=False) is None


def test_the_sessions_own_status_goes_before_that_of_the_server():
    """In the server's are the readings of what watches the load."""
    turns = [row(GLOBAL, "", "handler_read_next", at, at * 9e9, arm="a") for at in (0, 1)]
    turns += [row(GLOBAL, "", "innodb_buffer_pool_read_requests", at, at * 60.0, arm="a") for at in (0, 1)]
    found = counters_of(evidence(*turns, *sessions("a", "7", 200)), arm_of("a", 0), alone=False)
    assert found and (found.per_transaction("rows_read"), found.blocks) == (20.0, 6.0)


def reading(at: int, arm: str, **rows: float) -> list[Row]:
    """Return the rows of a table read by each index in the warm-up; `none` is the number read without an index."""
    named = {"" if name == "none" else name: value for name, value in rows.items()}
    return [row(SOURCE, f"s/t/{name}", "rows_fetched", at, value, arm=arm, block=0) for name, value in named.items()]


WARM_UP = [
    *reading(0, "a", pk=5, cust=100),
    *reading(1, "a", pk=5, cust=300),
    *reading(2, "b", pk=5, cust=300),
    *reading(3, "b", pk=5, cust=300, none=400),
]


def test_rows_by_index_are_counted_arm_by_arm_in_the_warm_up_of_slices():
    own = [*sessions("a", "7", 200, metric="rows_read"), *sessions("b", "8", 400, metric="rows_read")]
    connection, warm_up = evidence(*WARM_UP, *own), [block(0, "warmup")]
    one, two = (counters_of(connection, arm_of(name, at), alone=False, warmup=warm_up) for at, name in enumerate("ab"))
    assert one and two
    assert one.indexes["s/t/cust"].per == {"rows_by_index": 20.0}
    assert two.tables["s/t"].per == {"rows_scanned": 40.0, "rows_by_index": 0.0}
    assert two.tables["s/t"].last == {"indexes": 2.0} and two.sources("tables") == f"metrics: {SOURCE} in the warm-up"


def test_rows_by_index_that_are_not_the_sessions_are_not_used():
    """Others read the table meanwhile."""
    own = sessions("a", "7", 20, metric="rows_read")
    found = counters_of(evidence(*WARM_UP, *own), arm_of("a", 0), alone=False, warmup=[block(0, "warmup")])
    assert found and not found.tables and found.per_transaction("rows_fetched") == 2.0


def test_a_table_that_lost_an_index_counts_from_zero():
    """As a server does it: the old counters stand until the table is opened again."""
    turn = [*reading(0, "b", pk=5, cust=300), *reading(1, "b", pk=0, none=400)]
    own = sessions("b", "8", 400, metric="rows_read")
    found = counters_of(evidence(*turn, *own), arm_of("b", 1), alone=False, warmup=[block(0, "warmup")])
    assert found and found.tables["s/t"].per == {"rows_scanned": 40.0, "rows_by_index": 0.0}
    assert found.tables["s/t"].last == {"indexes": 1.0} and "s/t/cust" not in found.indexes
