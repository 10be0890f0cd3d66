"""A batch and its slow twin: the planted cause is named first."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from trace_batch import LOCK, Batch, write_batch
from trace_text import REAL, needs_data

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from dbdyno.study.analysis.traces.account import CPU, Account, Part
from dbdyno.study.analysis.traces.causes import Cause, Explanation, number_and_length_effects
from dbdyno.study.analysis.traces.compare import compare_traces
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.study.analysis.traces.reasons import _words
from dbdyno.trace.source import open_traces

NAMES = ("good", "bad")
PLAN = {"plan": 9999, "gets": 2_000}
PLANTED = {
    "a distant network": ({"network_us": 12_000}, "a round trip takes 12"),
    "a small fetch size": ({"fetch_size": 5}, "5 rows a fetch instead of 100"),
    "literals for bind variables": ({"literals": True}, "61 hard parses instead of 2; 60 of the texts differ only"),
    "another plan": (PLAN, "runs with another plan (9999 instead of 1111): 2,000 buffer gets instead of 20"),
    "more rows": ({"rows": 1_000, "gets": 200}, "handles 1,000 rows per execution instead of 100"),
    "more gets with the same plan": ({"gets": 2_000}, "takes 2,000 buffer gets per execution instead of 20"),
    "a cold cache": ({"reads": 60}, "3,600 waits for reads instead of 120 with the same plans and buffer gets"),
    "a slow disk": ({"read_us": 9_000}, "a physical read takes 9"),
    "a wait for a lock": ({"lock_us": 900_000}, f"{LOCK}: 1 wait, "),
    "a new statement": ({"extra": True}, "(insert into audit_log values (:1, :2, sysda…) is only in bad"),
    "a commit for each order": ({"commit_every": 1}, "60 commits instead of 3"),
    "slow commits": ({"sync_us": 90_000}, "a log file sync takes"),
    "more orders": ({"orders": 120}, "is executed 120 times instead of 60"),
}
BASES: dict[str, JsonObject] = {"more orders": {"block": True}, "slow commits": {"commit_every": 5}}


@functools.cache
def compared(one: Batch, two: Batch) -> dict[str, Any]:
    """Compare two batches once for all tests that look at this comparison; none of them changes it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            str(write_batch(Path(folder, f"{name}.trc"), one)) for name, one in zip(NAMES, (one, two), strict=True)
        ]
        with open_traces(paths[:1]) as base, open_traces(paths[1:]) as other:
            return compare_traces(base, other, ComparisonOptions(names=NAMES))


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_cause_is_named_first_and_the_causes_add_up(name: str):
    planted, words = PLANTED[name]
    base = Batch(**BASES.get(name, {}))
    model = compared(base, replace(base, **planted, seed=2))
    assert model["account"]["basis"] == "run", "the client did the same work"
    first = model["reasons"][0]
    assert words in first["text"]
    assert first["text"] + "." == model["verdict"]["sentences"][0]
    response = model["account"]["response_ns"]
    assert model["verdict"]["decision"] == ("unclear" if name == "a wait for a lock" else "slower"), (
        "one wait is no proof"
    )
    told = sum(reason["effect_ns"] for reason in model["reasons"])
    assert told == pytest.approx(response[1] - response[0], rel=0.05), "but for causes too small to tell"


@pytest.mark.parametrize("way", [1, -1])
def test_what_is_slower_and_therefore_done_less_often_has_no_effect_beyond_its_time(way: int):
    counts, times = (0.548, 0.00816)[::way], (38_000.0, 739_000.0)[::way]
    number, length = number_and_length_effects(counts, times)
    assert number + length == pytest.approx(times[1] - times[0])
    assert max(abs(number), abs(length)) <= max(times)
    assert number_and_length_effects((10.0, 20.0), (100.0, 400.0)) == (150.0, 150.0), (
        "both grow: each at the mean of the other"
    )


def test_the_statement_that_took_most_of_the_added_cpu_is_named_with_it():
    def account(slow_ns: int) -> Account:
        parts = (Part("select", CPU, "CPU", 0, slow_ns), Part("update", CPU, "CPU", 0, 40))
        return cast("Account", SimpleNamespace(parts=parts))

    known = {key: SimpleNamespace(known=SimpleNamespace(key=key, text=f"{key} …")) for key in ("select", "update")}
    explained = SimpleNamespace(accounts=(account(10), account(900)), scales=(1.0, 1.0), changes=known)
    cause = Cause("CPU", "", 890.0, [0.0, 0.0], [50.0, 940.0])
    said = _words(cause, cast("Explanation", explained), NAMES)
    assert said == "940 ns instead of 50.0 ns of CPU for the same work; most of that in select (select …)"


def test_the_other_way_round_the_same_cause_saves_the_time():
    model = compared(Batch(fetch_size=5), Batch(seed=2))
    assert model["verdict"]["decision"] == "faster"
    assert model["reasons"][0]["effect_ns"] < 0
    assert "123 round trips instead of 1,263: 100 rows a fetch instead of 5" in model["reasons"][0]["text"]


def test_one_good_run_against_one_bad_names_the_plan_although_the_client_executed_once():
    """It used to say "cannot tell": the client's executions were counted, and there was one."""
    batch = Batch(orders=200, block=True)
    model = compared(batch, replace(batch, **PLAN, seed=2))
    assert model["verdict"]["decision"] == "slower"
    assert "runs with another plan (9999 instead of 1111)" in model["verdict"]["sentences"][0]
    lead = model["metrics"][0]
    assert lead["low"] < lead["ratio"] < lead["high"]
    assert "For the same calls repeated" in model["verdict"]["sentences"][1]
    change = model["changes"][0]
    assert (change["what"], change["statement"]) == (["plan", "gets"], "s000000000101")
    assert [side["per_execution"]["gets"] for side in change["sides"]] == [20, 2_000]
    assert change["time"]["decision"] == "slower"


def test_runs_that_differ_by_chance_only_are_not_called_different():
    batch = Batch(orders=200, block=True)
    model = compared(batch, replace(batch, seed=2))
    assert model["verdict"]["decision"] in ("same", "unclear")
    assert model["metrics"][0]["low"] < 1 < model["metrics"][0]["high"]


def test_what_was_done_once_decides_nothing():
    """One execution a side: the numbers are facts, whether they repeat is not known."""
    model = compared(Batch(orders=1), Batch(orders=1, lock_us=900_000))
    assert model["verdict"]["decision"] == "unclear"
    assert "Cannot tell whether this would repeat" in model["verdict"]["sentences"][-1]
    assert f"{LOCK}: 1 wait" in model["verdict"]["sentences"][0], "the cause is named all the same"


def test_two_numbers_lead_and_round_trips_are_in_the_first_only():
    model = compared(Batch(), Batch(network_us=12_000, seed=2))
    headline = model["verdict"]["headline"]
    assert headline.startswith("bad took 14.4 times as long as good: 1.56 s instead of 108 ms of response time.")
    assert "Database time: 69.6 ms instead of 71.6 ms, 2.8 % shorter." in headline
    one, two = model["account"]["sides"]
    assert one["round_trips"] == two["round_trips"] == 123
    assert two["response_ns"] - two["database_ns"] == pytest.approx(123 * 12.1e6, rel=0.05)


def test_think_time_is_in_neither_number(tmp_path: Path):
    path = write_batch(tmp_path / "good.trc", Batch())
    text = path.read_text().rstrip("\n")
    tim = int(text.rpartition("tim=")[2].split("\n")[0])
    wait = "WAIT #0: nam='SQL*Net message from client' ela= 5000000 driver id=1 #bytes=1 p3=0 obj#=-1"
    thinks = tmp_path / "bad.trc"
    thinks.write_text(f"{text}\n{wait} tim={tim + 5_000_100}\n")
    with open_traces([str(path)]) as base, open_traces([str(thinks)]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    one, two = model["account"]["sides"]
    assert one["response_ns"] == two["response_ns"]
    assert (one["think_ns"], two["think_ns"]) == (0, 5_000_000_000)
    assert "left out: think time" in render_text(model, width=100, color=False)


def test_sets_of_unequal_work_are_compared_per_execution():
    model = compared(Batch(orders=60), Batch(orders=90, network_us=900, seed=2))
    assert model["account"]["basis"] == "execution"
    assert model["verdict"]["headline"].startswith("An execution of the client in bad takes ")
    assert "a round trip takes" in model["reasons"][0]["text"]
    assert "other work" in [warning["code"] for warning in model["warnings"]]


def test_more_queries_for_the_same_transactions_are_slower_and_named():
    """An order that reads its lines six times has more executions, each of them short: per execution it was
    called faster."""
    one, two = Batch(commit_every=1), Batch(commit_every=1, again=5, seed=2)
    model = compared(one, two)
    assert (model["account"]["basis"], model["verdict"]["decision"]) == ("run", "slower")
    assert "is executed 360 times instead of 60" in model["verdict"]["sentences"][0]


@pytest.mark.soak
def test_unequal_work_is_compared_per_transaction_where_the_statements_go_with_these():
    model = compared(Batch(commit_every=1), Batch(commit_every=1, again=5, orders=90, seed=2))
    assert (model["account"]["basis"], model["verdict"]["decision"]) == ("transaction", "slower")
    assert model["verdict"]["headline"].startswith("A transaction in bad takes ")
    assert "is executed 6 times instead of 1 per transaction" in model["verdict"]["sentences"][0]
    assert "60 and 90 transactions" in next(w["text"] for w in model["warnings"] if w["code"] == "other work")
    assert "response time, per transaction" in render_text(model, width=100, color=False)


def test_sessions_of_unequal_transactions_are_judged_per_transaction(tmp_path: Path):
    for name, planted in (("good", {}), ("bad", {"again": 3})):
        for at in range(6):
            batch = Batch(
                orders=20 + at, commit_every=1, session=f"{at + 10}.1", seed=at + 10 * bool(planted), **planted
            )
            write_batch(tmp_path / name / f"{at}.trc", batch)
    with open_traces([str(tmp_path / "good")]) as base, open_traces([str(tmp_path / "bad")]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    lead = model["metrics"][0]
    assert (model["verdict"]["decision"], lead["label"]) == ("slower", "response time per transaction")
    one, two = model["account"]["response_ns"]
    assert lead["ratio"] == pytest.approx(two / one, rel=0.02)


def test_added_round_trips_name_the_statement_that_makes_them():
    model = compared(Batch(), Batch(fetch_size=5, seed=2))
    first = model["verdict"]["sentences"][0]
    assert "5 rows a fetch instead of 100, mostly s000000000101 (select item, price" in first


def test_a_cause_inside_the_database_is_named_though_a_noisy_network_hides_it(tmp_path: Path):
    for name, planted in (("good", {}), ("bad", {"gets": 60})):
        for at in range(6):
            far = 20_000 + 1_000 * (at * (3 if planted else 5) % 6)
            batch = Batch(orders=20, network_us=far, session=f"{at + 10}.1", seed=at + 10 * bool(planted), **planted)
            write_batch(tmp_path / name / f"{at}.trc", batch)
    with open_traces([str(tmp_path / "good")]) as base, open_traces([str(tmp_path / "bad")]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    assert model["verdict"]["decision"] != "slower"
    last = model["verdict"]["sentences"][-1]
    assert last.startswith("Database time per execution: ")
    assert "takes 60 buffer gets per execution instead of 20" in last


def test_without_waits_the_database_time_leads(tmp_path: Path):
    paths = []
    for name, batch in zip(NAMES, (Batch(), Batch(**PLAN, seed=2)), strict=True):
        path = write_batch(tmp_path / f"{name}.trc", batch)
        lines = [line for line in path.read_text().splitlines() if not line.startswith("WAIT")]
        path.write_text("\n".join([*lines, ""]))
        paths.append(str(path))
    with open_traces(paths[:1]) as base, open_traces(paths[1:]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    assert "Response time is not known: traced without waits." in model["verdict"]["headline"]
    assert model["metrics"][0]["metric"] == "database"


def write_jobs(folder: Path, **planted: Any) -> Path:
    for at in range(6):
        write_batch(folder / f"{folder.name}-job{at}.trc", Batch(orders=10 * (at + 1), seed=at + 1, **planted))
    return folder


@pytest.fixture(scope="module")
def paired(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Compare six jobs of very different lengths pair by pair; one file has no counterpart."""
    folder = tmp_path_factory.mktemp("paired")
    one, two = write_jobs(folder / "old"), write_jobs(folder / "new", gets=40)
    write_batch(two / "stray.trc", Batch())
    with open_traces([str(one)]) as base, open_traces([str(two)]) as other:
        return compare_traces(base, other, ComparisonOptions(names=("old", "new"), pair=r"job(\d+)"))


def test_files_are_paired_by_name(paired: dict[str, Any]):
    """Pair by pair the difference is plain."""
    assert paired["verdict"]["decision"] == "slower"
    assert "over 6 pairs" in paired["verdict"]["sentences"][-1]
    assert [row["key"] for row in paired["pairs"]] == list("012345")
    assert all(row["response_ns"][1] > row["response_ns"][0] for row in paired["pairs"])
    assert any("Left out, without a counterpart: stray.trc." in warning["text"] for warning in paired["warnings"])
    assert paired["account"]["basis"] == "run", "the stray file is in no number"


def test_pairs_are_shown_in_text_and_html_the_largest_difference_first(paired: dict[str, Any]):
    text = render_text(paired, width=100, color=False)
    shown = text[text.index("Pairs that differ most") :].splitlines()[1:8]
    assert shown[0].split() == ["pair,", "response", "time", "old", "new", "difference", "change"]
    assert [line.split()[0] for line in shown[1:7]] == list("543210"), "by difference"
    assert "Pairs that differ most" in render_html(paired)
    many = [{**paired["pairs"][0], "key": f"job{at}"} for at in range(12)]
    text = render_text({**paired, "pairs": many}, width=100, color=False)
    assert "2 more" in " ".join(text.split()), text


def test_warnings_on_two_sets_never_fill_half_a_page():
    model = dict(compared(Batch(), Batch(network_us=12_000, seed=2)))
    long = {"code": "trace", "text": f"a.trc: {'torn ' * 400}", "next": "look"}
    model["warnings"] = [{**long, "text": f"{at} {long['text']}"} for at in range(9)]
    lines = render_text(model, width=80, color=False).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("! 0 a.trc"))
    assert "5 more warnings; --format json has all" in "\n".join(lines[first:])
    assert len([line for line in lines[first:] if "torn" in line]) <= 4 * 3
    assert all(len(model["warnings"][at]["text"]) > 2000 for at in range(9)), "JSON has them whole"


def test_too_few_blocks_make_a_verdict_provisional_by_the_one_rule():
    """Five batches gave a verdict here while six blocks are the least everywhere else."""
    from dbdyno.stats.stratified import Stratum, compare_totals

    def side(count: int, each: float) -> list[Stratum]:
        return [Stratum(np.array([each, each + 1] * count)[:count], np.ones(count))]

    few = compare_totals(side(3, 100), side(3, 400))
    assert (few.decision, few.blocks_least) == ("provisional", 6)
    assert compare_totals(side(20, 100), side(20, 400)).decision == "slower"


def test_a_pattern_that_pairs_nothing_says_what_it_found(tmp_path: Path):
    one, two = write_jobs(tmp_path / "old"), write_jobs(tmp_path / "new")
    with (
        open_traces([str(one)]) as base,
        open_traces([str(two)]) as other,
        pytest.raises(TraceError, match="finds 'old-job' in the first set, 'new-job' in the other"),
    ):
        compare_traces(base, other, ComparisonOptions(pair=r"\w+-job"))
    with open_traces([str(one)]) as base, pytest.raises(TraceError, match="not a valid regular expression"):
        compare_traces(base, base, ComparisonOptions(pair="("))


def test_the_answer_stands_in_text_json_and_html():
    batch = Batch(orders=200, block=True)
    model = json.loads(json.dumps(compared(batch, replace(batch, **PLAN, seed=2)), allow_nan=False))
    for width in (60, 80, 120):
        text = render_text(model, width=width, color=False)
        assert max(map(len, text.splitlines())) <= width
    head = text[: text.index("The arms")]
    for words in ("SLOWER", "response time", "database time", "other plan", "buffer gets", "hard parses", "in all"):
        assert words in head
    page = render_html(model)
    for words in ("In two numbers", "Statements that changed", "9999", "another plan"):
        assert words in page


@needs_data
def test_real_traces_compare_and_their_causes_add_up():
    pairs = [path for path in REAL if "trace-combine_trace_js122a1" in path.name]
    with open_traces([str(pairs[0])]) as base, open_traces([str(pairs[1])]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    one, two = model["account"]["response_ns"]
    told = sum(row["difference_ns"] for row in model["figures"]["contributions"])
    assert told == pytest.approx(two - one, abs=2)
    assert sum(r["effect_ns"] for r in model["reasons"]) == pytest.approx(two - one, abs=0.05 * max(one, two))
