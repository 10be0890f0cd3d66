"""Reasons why an arm is slower: amounts that add up, intervals over blocks, deeper causes, and when none is given."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

from dbdyno.base.explanation import CausalExplanation
from dbdyno.pages import explanation as pages_why
from dbdyno.stats.jackknife import half_width, jackknife
from dbdyno.study.analysis.explanation.explain import explain
from dbdyno.study.analysis.explanation.pair import Station
from dbdyno.study.analysis.explanation.parts import Side, side_of
from dbdyno.study.analysis.explanation.server_counters import ArmCounters, ObjectCounters

BLOCKS, COUNT = 12, 1000


def side(
    name: str,
    *,
    cpu_us: float = 0.0,
    reads: float = 0.0,
    writes: float = 0.0,
    seed: int = 1,
    exact: bool = False,
    **waits: float,
) -> Side:
    """Return an arm whose transactions wait for each event for these times [us], which vary by a few percent."""
    dice = np.random.default_rng(seed)
    events = tuple((event.partition("__")[0], event.partition("__")[2]) for event in waits)
    count = np.full(BLOCKS, float(COUNT))
    spread = dice.normal(1, 0.03, (BLOCKS, len(events)))
    weights = np.array(list(waits.values())) * 1e3 * COUNT * spread if events else np.zeros((BLOCKS, 0))
    cpu = cpu_us * 1e3 * count * dice.normal(1, 0.02, BLOCKS)
    elapsed = weights.sum(axis=1) + cpu + 20e3 * count
    billed = count if cpu_us else np.zeros(BLOCKS)
    return Side(
        name,
        events,
        count,
        elapsed,
        np.zeros(BLOCKS),
        count,
        elapsed,
        weights,
        exact,
        5000,
        5000.0,
        cpu,
        reads * count,
        writes * count,
        billed,
    )


def told(base: Side | None, other: Side, **more: Any) -> CausalExplanation:
    return explain(base, other, level=0.95, arm=1, **more)


def counts(
    *,
    rows: float = 1.0,
    seq: float = 0.0,
    idx: float = 1.0,
    live: float = 1e5,
    indexes: float = 2.0,
    temp: float | None = None,
) -> ArmCounters:
    table = ObjectCounters(
        {"seq_scan": seq, "seq_tup_read": rows * (seq > 0), "idx_scan": idx, "idx_tup_fetch": idx},
        {"n_live_tup": live, "indexes": indexes},
    )
    used = {"public/orders/orders_cust": ObjectCounters({"idx_scan": idx})}
    totals = {"rows_read": rows, "blocks_hit": 4 + rows / 60, "blocks_read": 0.0}
    totals |= {} if temp is None else {"temp_bytes": temp}
    return ArmCounters(totals, {"public/orders": table}, used if idx else {}, 1000, None, 10.0)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(3).normal(10, 2, 30)
    found, error = jackknife(lambda keep: values[keep].mean(), 30)
    assert float(found) == pytest.approx(values.mean())
    assert float(error) == pytest.approx(values.std(ddof=1) / np.sqrt(30))
    from scipy import stats

    low, high = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    half = float(half_width(error, 30, 0.95))
    assert (float(found) - half, float(found) + half) == (pytest.approx(low), pytest.approx(high))


def test_what_a_commit_saves_is_the_sync_with_share_and_interval():
    why = told(side("sync", cpu_us=100, commit__WALSync=291, seed=2), side("async", cpu_us=100, seed=3))
    (cause,) = why.causes
    assert (cause.code, cause.about) == ("wait", "WALSync")
    assert cause.amount == pytest.approx(-291e3, rel=0.05)
    assert cause.low is not None and cause.high is not None and cause.low < -291e3 < cause.high
    assert cause.share == pytest.approx(1, abs=0.05)
    assert why.amount is not None and why.rest is not None
    assert (cause.amount or 0) + why.rest == pytest.approx(why.amount), "causes and the rest add up"


def test_intervals_hold_the_planted_amount_in_about_95_of_100():
    held = 0
    for seed in range(100):
        why = told(side("a", cpu_us=100, seed=seed), side("b", cpu_us=100, lock__transactionid=50, seed=1000 + seed))
        cause = why.causes[0]
        assert cause.code == "lock" and cause.low is not None and cause.high is not None
        held += cause.low <= 50e3 <= cause.high
    assert 88 <= held <= 100


def test_what_the_client_does_stands_behind_the_servers_own_time_however_much_it_is():
    slow = side("on", cpu_us=100, seed=1, commit__WALSync=90, network__ClientRead=340)
    fast = side("off", cpu_us=100, seed=2, commit__WALSync=1, network__ClientRead=200)
    sync, client = told(slow, fast).causes
    assert (sync.about, client.about) == ("WALSync", "ClientRead")
    assert client.share > sync.share > 0.3
    assert client.sentence.startswith("the server waits for its client (ClientRead): ")


def test_a_cause_below_a_tenth_is_named_if_more_than_a_twentieth_would_be_unexplained():
    base = side("on", cpu_us=185, seed=2, commit__WALWrite=430, commit__WALSync=260, latch__WALInsert=1)
    rest = {"commit__WALWrite": 0, "commit__WALSync": 0, "latch__WALInsert": 0}
    busy = replace(base, elapsed=base.elapsed + 120e3 * base.count)
    why = told(busy, side("off", cpu_us=105, seed=3, **rest))
    assert [cause.about for cause in why.causes] == ["WALWrite", "WALSync", "ready, without a processor", "CPU"]
    assert why.causes[-1].share == pytest.approx(0.09, abs=0.01)
    assert why.rest_share is not None and abs(why.rest_share) < 0.05


def test_what_works_against_the_difference_is_named_and_said_to():
    why = told(side("on", seed=2, commit__WALSync=300, lock__tuple=1), side("off", seed=3, lock__tuple=60))
    assert [(cause.about, cause.share and cause.share > 0) for cause in why.causes] == [
        ("WALSync", True),
        ("tuple", False),
    ]
    assert why.rest_share is not None and abs(why.rest_share) < 0.05
    (section,) = pages_why.sections({"why": [why.as_dict()]})
    assert "in the opposite direction (-2" in section.findings[1].sentence


def test_no_difference_has_no_cause():
    why = told(side("a", cpu_us=100, commit__WALSync=200, seed=5), side("b", cpu_us=100, commit__WALSync=200, seed=6))
    assert not why.causes and "uncertainty" in why.withheld


def test_what_was_counted_otherwise_is_told_where_time_tells_nothing():
    """Whichever arm was the faster by chance, and as no cause."""
    often = replace(counts(), totals={"checkpoints": 0.05, "full_pages": 2.0})
    seldom = replace(counts(), totals={"checkpoints": 0.0, "full_pages": 0.1})
    for seed in (5, 6):
        sides = side("calm", cpu_us=100, seed=seed), side("stormy", cpu_us=100, seed=11 - seed)
        why = told(*sides, counts=(seldom, often))
        (note,) = why.notes
        assert not why.causes and why.withheld and "checkpoints follow each other with stormy" in note
    assert not told(*sides, counts=(often, often)).notes, "what both have tells nothing"


def test_of_sessions_looked_at_too_seldom_is_told_what_was_counted():
    """A lookup on the storage was 8 times as slow, and nothing stood under Why: looked at 40 times."""
    far = replace(side("storage", cpu_us=50, data_read__DataFileRead=800, reads=2.0), looks=40.0)
    cold = replace(counts(), totals={**counts().totals, "blocks_hit": 2.0, "blocks_read": 2.0})
    why = told(side("memory", cpu_us=50), far, counts=(counts(), cold))
    assert why.withheld and "sampled about 40 times" in why.withheld and not why.causes
    assert "Counters differ, but their share of the time is not known: the cache is colder" in why.notes[0]


def test_a_spill_told_beside_is_not_told_as_a_cold_cache_too():
    noisy = side("64MB", cpu_us=2000, seed=6), side("1MB", cpu_us=2000, reads=75, writes=76, seed=5)
    why = told(*noisy, counts=(counts(temp=0.0), counts(temp=75 * 8192.0)))
    (note,) = why.notes
    assert why.withheld and "spill to temporary files with 1MB" in note


def test_checkpoints_that_stand_before_the_syncs_of_sessions_need_no_full_pages():
    """A load that touches each page once writes it whole in any case: then the time that checkpoints take tells."""
    common = {"full_pages": 1.0}
    often = replace(counts(), totals={**common, "checkpoints": 0.5, "checkpoint_ns": 6e6})
    seldom = replace(counts(), totals={**common, "checkpoints": 0.0, "checkpoint_ns": 0.0})
    sides = side("a", cpu_us=50, commit__WALSync=100), side("b", cpu_us=50, commit__WALSync=900)
    (cause,) = told(*sides, counts=(seldom, often)).causes
    assert cause.code == "checkpoint" and "60%" in cause.evidence[0]
    idle = replace(often, totals={**often.totals, "checkpoint_ns": 5e5})
    assert told(*sides, counts=(seldom, idle)).causes[0].code == "wait"


def test_a_table_that_grew_is_told_by_the_rows_that_came_where_live_ones_were_counted_twice():
    """A load and a vacuum in one session: the live rows were twice those that there are."""
    pair = [counts(rows=rows, seq=1.0, idx=0.0, live=1e5) for rows in (5e4, 1e5)]
    assert told(side("a", cpu_us=1500), side("b", cpu_us=3000), counts=(pair[0], pair[1])).causes[0].code != "growth"
    for one, rows in zip(pair, (5e4, 1e5), strict=True):
        one.tables["public/orders"].last["n_tup_ins"] = rows
    assert told(side("a", cpu_us=1500), side("b", cpu_us=3000), counts=(pair[0], pair[1])).causes[0].code == "growth"


def test_evidence_that_does_not_carry_names_nothing():
    base, other = side("a", cpu_us=100), side("b", cpu_us=300)
    assert "there is no verdict" in told(base, other, withheld="there is no verdict: errors").withheld
    assert "were not sampled" in told(replace(base, looks=0.0), other).withheld
    few = told(base, replace(other, looks=40.0))
    assert "40 times" in few.withheld and "activity_hz" in few.next and not few.causes


def test_an_index_that_is_not_there_is_named_with_its_table():
    pair = (counts(), counts(rows=60000, seq=1.0, idx=0.0, indexes=1.0))
    why = told(side("with", cpu_us=50), side("without", cpu_us=3000), counts=pair)
    cause = why.causes[0]
    assert (cause.code, cause.about) == ("index", "orders_cust")
    assert "60,000 rows read instead of" in cause.evidence[0]
    back = told(side("without", cpu_us=3000), side("with", cpu_us=50), counts=pair[::-1]).causes[0]
    assert back.code == "index" and "with without" in back.sentence, "the slower arm may be the base"


def test_the_same_indexes_and_another_way_are_a_plan_and_more_rows_a_scan_growth():
    flip = (counts(), counts(rows=60000, seq=1.0, idx=0.0))
    assert told(side("a", cpu_us=50), side("b", cpu_us=3000), counts=flip).causes[0].code == "plan"
    grown = (counts(rows=50000, seq=1.0, idx=0.0, live=5e4), counts(rows=1e5, seq=1.0, idx=0.0, live=1e5))
    assert told(side("a", cpu_us=1500), side("b", cpu_us=3000), counts=grown).causes[0].code == "growth"


def test_reads_of_files_at_the_same_work_are_a_cold_cache_and_too_few_of_them_are_not():
    cold = told(side("warm", cpu_us=100), side("cold", cpu_us=400, reads=90), counts=(counts(), counts()))
    assert cold.causes[0].code == "cache"
    few = told(side("a", cpu_us=100), side("b", cpu_us=400, reads=0.1), counts=(counts(), counts()))
    assert few.causes[0].code == "cpu", "a tenth of a read does not take 300 us"


def test_a_sort_that_spills_is_no_cold_cache():
    """The example of `plan new` was told "the cache is colder": its reads were of the temporary files of its sort."""
    small = side("1MB", cpu_us=9000, reads=75, writes=76, **{"data write__BufFileWrite": 1500})
    large = side("64MB", cpu_us=2000, reads=0.02)
    cause = told(small, large).causes[0]
    assert (cause.code, cause.about) == ("spill", "temporary files")
    assert "reads files 75 times and writes them 76 times, instead of 0.02 and 0" in cause.sentence
    assert cause.share == pytest.approx(1, abs=0.05), "the waits for its writes are part of it"


def test_what_a_session_waits_for_its_parallel_workers_is_explained_by_their_work():
    """Of a sort that spilled in workers 58 % were "waits for MessageQueueReceive (other)"; the spill came second."""
    waits = {"other__MessageQueueReceive": 1e5, "other__ExecuteGather": 500.0}
    small = side("1MB", cpu_us=200, reads=519, writes=491, **waits)
    large = side("32MB", cpu_us=200, reads=0.02)
    (cause,) = told(small, large).causes
    assert (cause.code, cause.share) == ("files", pytest.approx(1, abs=0.05))
    (alone,) = told(
        side("a", cpu_us=200), side("b", cpu_us=200, other__MessageQueueReceive=9e3, other__BgworkerStartup=1e3)
    ).causes
    assert alone.share == pytest.approx(1, abs=0.05), "one cause, whichever of them it is"
    assert alone.sentence.startswith("sessions wait for their own parallel workers (MessageQueueReceive)")


def test_reads_with_writes_that_nothing_tells_apart_are_called_what_they_are():
    cause = told(side("b", cpu_us=9000, reads=75, writes=76), side("a", cpu_us=2000)).causes[0]
    assert cause.code == "files" and "temporary files, or pages that a small cache pushes out" in cause.sentence


def test_temporary_files_that_the_server_counts_are_a_spill_and_none_a_cold_cache():
    slow, fast = side("b", cpu_us=9000, reads=75, writes=76), side("a", cpu_us=2000)
    spilled = told(slow, fast, counts=(counts(temp=75 * 8192.0), counts(temp=0.0))).causes[0]
    assert spilled.code == "spill" and "and uses 600 KiB of temporary files instead of 0 bytes" in spilled.sentence
    assert told(slow, fast, counts=(counts(temp=0.0), counts(temp=0.0))).causes[0].code == "cache"
    far = told(side("b", CPU__CPU=9000), side("a", CPU__CPU=2000), counts=(counts(temp=75 * 8192.0), counts(temp=0.0)))
    assert far.causes[0].code == "spill", "of a server on another host its counter says it"


def test_time_ready_to_run_is_a_processor_that_others_use():
    other = side("beside hogs", cpu_us=100, seed=4)
    late = replace(other, elapsed=other.elapsed + 500e3 * other.count)
    pair = tuple(replace(counts(), busy_ns=busy) for busy in (2e5, 9e6))
    cause = told(side("alone", cpu_us=100), late, counts=pair).causes[0]
    assert cause.code == "processor" and "0.89 processors instead of 0.01" in cause.evidence[0]
    assert told(side("alone", cpu_us=100), late).causes[0].code == "ready", "nobody knows who used it"


def test_a_slower_device_of_a_model_is_named():
    stations = ({"log": Station(1.0, 2e5)}, {"log": Station(1.0, 4e6)})
    base, other = (side(n, exact=True, **{"commit__log file sync": us}) for n, us in (("fast", 200), ("slow", 4000)))
    cause = told(base, other, stations=stations).causes[0]
    assert (cause.code, cause.about) == ("device", "log")
    assert "4.00 ms with slow instead of 200 µs" in cause.sentence


def test_waits_that_watchpoints_timed_are_told_with_what_would_cost_less():
    base, other = (side(n, exact=True, commit__WALSync=us) for n, us in (("off", 200), ("on", 4000)))
    [paid] = told(base, replace(other, probes_ns=28_400.0)).notes
    assert "of their probe; probes took 28.4 µs" in paid
    paid, dearer = told(base, replace(other, probes_ns=302_000.0, watchpoints=True)).notes
    assert "of their watchpoint; watchpoints took 302 µs" in paid
    assert dearer.endswith("`dbdyno doctor` says how to allow them.")


def test_sampled_waits_never_exceed_the_time_that_there_is():
    much = side("a", cpu_us=100, lock__tuple=300)
    doubled = replace(much, weights=much.weights * 2)
    every = np.ones(BLOCKS, dtype=bool)
    events = [("lock", "tuple"), ("CPU", "CPU"), ("CPU", "ready, without a processor"), ("queue", "a free session")]
    assert doubled.event_times_ns(events, every).sum() == pytest.approx(doubled.mean(every))


def test_of_one_arm_its_time_is_told():
    why = told(None, side("a", cpu_us=100, commit__WALSync=300))
    assert why.before is None
    assert [cause.about for cause in why.causes] == ["WALSync", "CPU"]


def test_a_page_says_amount_share_interval_rest_and_why_there_is_none():
    why = told(side("sync", cpu_us=100, commit__WALSync=291, seed=2), side("async", cpu_us=100, seed=3)).as_dict()
    (section,) = pages_why.sections({"why": [why | {"rest": -6e4, "rest_share": 0.2}]})
    assert "less a transaction" in section.sentences[0]
    assert "waits for WALSync" in section.findings[0].sentence and "%" in section.findings[0].sentence
    assert section.notes[0].startswith("Not explained by these: −60") or "(20 %)" in section.notes[0]
    (whole,) = pages_why.sections({"why": [why | {"rest": 1e-9, "rest_share": 1e-12}]})
    assert whole.notes[0] == "Together these causes explain the total."
    held = told(side("a", cpu_us=100), side("b", cpu_us=300), withheld="there is no verdict: errors").as_dict()
    (section,) = pages_why.sections({"why": [held]})
    assert section.findings[0].sentence.startswith("No cause is named")
    assert not list(pages_why.sections({}))


@pytest.mark.parametrize(
    ("source", "exact", "read"), [("looks", True, True), ("probes", True, False), ("host", False, False)]
)
def test_an_arm_without_a_wait_is_not_called_sampled_if_its_waits_were_recorded(source: str, exact: bool, read: bool):
    report = {"arms": [{"arm": 0, "user_ns": 5_000_000, "system_ns": 0, "transactions": 10}]}
    blocks = [SimpleNamespace(index=at, report=report) for at in (4, 5)]
    arm: Any = SimpleNamespace(name="a", label="a", number=0, expected=(), blocks=blocks)
    with duckdb.connect() as connection:
        connection.execute("create table slices as select 4 as block, 0 as slice, true as counts")
        connection.execute(
            "create table calls as select 'a' as arm, b.block::int as block, 0 as slice, 'transaction' as kind,"
            " null::varchar as error, null::boolean as expected, 1000000::bigint as elapsed_ns, 0::bigint as"
            " started_ns, 0::bigint as intended_ns"
            " from range(4, 6) b(block), range(10)"
        )
        connection.execute(
            f"create view metrics as select '{source}' as source, 'cost' as metric, '' as arm, 4 as block, 0::double as"
            " value"
        )
        found = side_of(connection, arm, 10.0)
    assert (found.exact, found.read) == (exact, read)


def test_where_nothing_was_seen_no_time_is_given_to_the_processor():
    """Without a sample and without the host's word on CPU all time was "ready to run"."""
    blind = [
        replace(side(name, io__Read=us), samples=0, weights=np.zeros((BLOCKS, 1))) for name, us in (("a", 9), ("b", 1))
    ]
    assert told(*blind).withheld == "neither waits nor CPU of a were seen, so it is not known where its time went"
