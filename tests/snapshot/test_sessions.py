"""Active session history, events on the clock and blocking trees, from synthetic samples and from a server."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from snapshot_help import Lab, section

from command_line import dbdyno, succeeded
from dbdyno.base.errors import SnapshotError
from dbdyno.report.figures import NARROW, WIDE, clock, session_history
from dbdyno.report.html import render_html
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY, BLOCKED
from dbdyno.snapshot.engines.postgres.waits import waits
from dbdyno.snapshot.engines.view import Column, Options, View
from dbdyno.snapshot.reading import timeline
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.sessions import blocking
from dbdyno.snapshot.sessions.history import History
from dbdyno.snapshot.sessions.report import sessions
from dbdyno.snapshot.sessions.samples import statements_of
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import watch

START_US = 1_790_000_000_000_000
SECOND = 1_000_000


def look(second: float, pid: int, **more: Any) -> dict[str, Any]:
    known = {
        "at_us": START_US + round(second * SECOND),
        "session": pid,
        "kind": "client backend",
        "datname": "shop",
        "usename": "app",
        "application": "web",
        "state": "active",
    }
    return {**known, **more}


def view(name: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> View:
    return View(name, "now", tuple(columns), [tuple(row.get(c.name) for c in columns) for row in rows])


def stored(
    folder: Path,
    activity: Sequence[Mapping[str, Any]],
    blocked: Sequence[Mapping[str, Any]] = (),
    *,
    seconds: int = 60,
    parts: int = 1,
    looks: int = 60,
    columns: Sequence[Column] = ACTIVITY,
) -> Interval:
    """Return an interval with these synthetic samples, in `parts` sub-intervals and with `looks` looks in total."""
    store = Store(folder)
    made = []
    for at in range(parts + 1):
        low, high = (START_US + edge * seconds // parts * SECOND for edge in (at - 1, at))
        inside = [row for row in activity if low < row["at_us"] <= high]
        held = [row for row in blocked if low < row["at_us"] <= high]
        views = [view("activity", columns, inside), view("blocked", BLOCKED, held)] if at else []
        cost = {"looks": looks // parts} if at else {}
        made.append(store.add(views, engine="postgres", target="made:1", at_ns=high * 1000, facts={}, cost=cost))
    return Interval(store, made[0], made[-1], made)


def test_active_sessions_are_sessions_seen_over_looks_taken(tmp_path: Path) -> None:
    rows = [look(s, 1, statement=7) for s in range(1, 31)]
    rows += [look(s, 2, statement=8, event_type="Lock", event="tuple") for s in range(1, 16)]
    with stored(tmp_path, rows) as interval:
        found = {
            row["name"]: (row["aas"], row["share"], row["mostly"]) for row in History(interval).averages_by("statement")
        }
    assert found == {"7": (0.5, 30 / 45, "CPU 100 %"), "8": (0.25, 15 / 45, "lock 100 %")}


def test_the_longest_transactions_are_listed_one_by_one(tmp_path: Path) -> None:
    def seen(second: float, pid: int, open_s: float, **more: Any) -> dict[str, Any]:
        return look(second, pid, transaction_us=round(open_s * SECOND), **more)

    idle = {"state": "idle in transaction", "state_us": 9 * SECOND}
    rows = [seen(s, 1, s - 1, statement=7, statement_us=200_000) for s in range(2, 11)]
    rows += [seen(11, 1, 10, statement=7, **idle), seen(20, 1, 2.5, statement=8), seen(21, 2, 0.5)]
    with stored(tmp_path, rows) as interval:
        found = History(interval).transactions(5)
    facts = [(row["session"], row["open"] / 1e9, row["idled"], row["statement"], row["state"]) for row in found]
    assert facts == [("1", 10.0, 9 * 10**9, "7", "idle in transaction"), ("1", 2.5, None, "8", "active")]


def test_a_session_in_a_part_of_the_looks_of_a_second_counts_by_that_part(tmp_path: Path) -> None:
    wait = {"event_type": "IO", "event": "WALSync"}
    rows = [look(s, 1, looks=250, of_looks=1000, **wait) for s in range(1, 61)]
    rows += [look(s, 1, looks=3, of_looks=999) for s in range(1, 61)]
    rows += [look(s, 2, state="idle in transaction", looks=500, of_looks=1000) for s in range(1, 61)]
    with stored(tmp_path, rows) as interval:
        history = History(interval)
        found = {row["name"]: row["aas"] for row in history.averages_by("event")}
        drawn = history.over_time()
        idle, made = history.idle_in_transaction(), waits(interval, 10)
    assert found == {"WALSync": 0.25, "CPU": pytest.approx(3 / 999, abs=1e-6)}
    assert idle == 0.5
    by_event = next(one for one in made["tables"] if one["title"] == "By event")
    assert [(row["event"], row["aas"], row["seen"]) for row in by_event["rows"]] == [
        ("WALSync", 0.25, 15.0),
        ("CPU", pytest.approx(3 / 999, abs=1e-6), pytest.approx(60 * 3 / 999, abs=1e-4)),
    ]
    assert drawn is not None
    means = {one["name"]: max(value or 0 for value in one["values"]) for one in drawn["classes"]}
    assert means == {"commit": pytest.approx(0.25, rel=0.01), "CPU": pytest.approx(3 / 999, rel=0.01)}


def test_rows_of_one_look_and_of_many_are_read_together(tmp_path: Path) -> None:
    """A store that an older dbdyno began has rows without numbers of looks."""
    store, made = Store(tmp_path), []
    for at, columns in enumerate((ACTIVITY, ACTIVITY[:14], ACTIVITY)):
        rows = [look(at * 10 + s - 10, 1, looks=100, of_looks=1000) for s in range(1, 11)] if at else []
        at_ns = (START_US + at * 10 * SECOND) * 1000
        views = [view("activity", columns, rows)]
        cost = {"looks": 10 if at else 0}
        made.append(store.add(views, engine="postgres", target="made:1", at_ns=at_ns, facts={}, cost=cost))
    with Interval(store, made[0], made[-1], made) as interval:
        assert [row["aas"] for row in History(interval).averages_by("class")] == [(10 + 1) / 20]


def test_the_holder_of_the_oldest_horizon_is_named_and_not_who_inherited_it(tmp_path: Path) -> None:
    def seen(second: float, pid: int, age: int | None, open_s: float, **more: Any) -> dict[str, Any]:
        return look(second, pid, **{"horizon_age": age, "transaction_us": round(open_s * SECOND)} | more)

    idle = {"state": "idle in transaction", "statement": 7}
    rows = [seen(s, 1, s * 100, s - 1, **idle) for s in range(2, 31)]
    rows += [seen(s, 2, s * 100, 0.2, statement=8) for s in range(2, 31)]  # its snapshots have the horizon of 1
    rows += [seen(s, 3, None, s, statement=9) for s in range(2, 31)]  # the longest, which holds nothing back
    rows += [seen(s, 2, 5, 0.2, statement=8) for s in range(31, 50)]  # nobody holds anything for a second
    rows += [seen(s, 4, 90, s - 50, kind="walsender", transaction_us=None) for s in range(50, 53)]
    with stored(tmp_path, [one | {"client": "local"} for one in rows]) as interval:
        history = History(interval)
        found = [(r["session"], r["horizon"], r["held"], r["open"], r["state"]) for r in history.horizons(5)]
        page = report(interval, 5)
    assert found == [
        ("1", 3000, 29 * 10**9, 29 * 10**9, "idle in transaction"),
        ("4", 90, 3 * 10**9, None, "walsender"),
    ]
    tables = section(page, "sessions")["tables"]
    (shown,) = [one for one in tables if one["title"] == "Transactions that held back vacuum"]
    assert [(row["session"], row["horizon"]) for row in shown["rows"]] == [("1", 3000), ("4", 90)]


def test_idle_in_a_transaction_and_the_servers_own_processes_are_not_active(tmp_path: Path) -> None:
    rows = [look(1, 1), look(1, 2, state="idle in transaction"), look(1, 3, kind="checkpointer", state=None)]
    with stored(tmp_path, rows) as interval:
        history = History(interval)
        assert [row["aas"] for row in history.averages_by("user")] == [1 / 60]
        assert history.idle_in_transaction() == 1 / 60


def test_our_own_snapshots_are_not_among_the_sessions(tmp_path: Path) -> None:
    rows = [look(1, 1), look(1, 2, application="dbdyno snap")]
    with stored(tmp_path, rows) as interval:
        assert [row["name"] for row in History(interval).averages_by("application")] == ["web"]


def test_nor_are_they_among_the_waits_and_those_idle_in_a_transaction(tmp_path: Path) -> None:
    """A watch of once a second had 3 % of the waits by its own reads, and 0.27 sessions idle in a transaction."""
    ours = {"application": "dbdyno snap"}
    rows = [look(1, 1, statement=7), look(1, 2, statement=8, **ours), look(2, 2, state="idle in transaction", **ours)]
    with stored(tmp_path, rows) as interval:
        assert History(interval).idle_in_transaction() == 0
        made = waits(interval, 10)
    by_statement = next(one for one in made["tables"] if one["title"] == "By statement")
    assert [(row["statement"], row["share"]) for row in by_statement["rows"]] == [("7", 1.0)]
    assert made["notes"] == ["60 samples, one every 1 s"]


@pytest.mark.parametrize(
    ("dimension", "column"),
    [("user", "usename"), ("database", "datname"), ("application", "application"), ("client", "client")],
)
def test_sessions_are_drilled_by_each_dimension(tmp_path: Path, dimension: str, column: str) -> None:
    rows = [look(s, 1, **{column: "one"}) for s in (1, 2)] + [look(3, 2, **{column: "two"})]
    with stored(tmp_path, rows) as interval:
        assert [(row["name"], row["seen"]) for row in History(interval).averages_by(dimension)] == [
            ("one", 2),
            ("two", 1),
        ]


def test_where_keeps_what_it_names_and_shares_are_of_what_is_kept(tmp_path: Path) -> None:
    rows = [look(1, 1, usename="a"), look(1, 2, usename="b"), look(2, 2, usename="b", event_type="Lock", event="tuple")]
    with stored(tmp_path, rows) as interval:
        (only,) = History(interval, {"user": "b", "class": "lock"}).averages_by("session")
    assert (only["name"], only["share"]) == ("2", 1.0)


def test_a_value_with_quotes_is_a_value_and_no_sql(tmp_path: Path) -> None:
    with stored(tmp_path, [look(1, 1, application="o'brien; --")]) as interval:
        assert len(History(interval, {"application": "o'brien; --"}).averages_by("user")) == 1
        assert History(interval, {"application": "' or true --"}).averages_by("user") == []


def test_a_dimension_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with stored(tmp_path, []) as interval, pytest.raises(SnapshotError, match="cannot be grouped by"):
        History(interval).averages_by("colour")


def test_the_stack_over_the_clock_adds_up_to_what_was_seen(tmp_path: Path) -> None:
    rows = [look(s, 1) for s in range(1, 31)] + [look(s, 2, event_type="Lock", event="tuple") for s in range(21, 31)]
    with stored(tmp_path, rows) as interval:
        drawn = History(interval).over_time()
    assert drawn is not None
    width = drawn["width_us"] / 60 / SECOND
    sums = {one["name"]: sum(v or 0 for v in one["values"]) * width for one in drawn["classes"]}
    assert sums == {"CPU": pytest.approx(0.5, rel=0.05), "lock": pytest.approx(10 / 60, rel=0.05)}


def test_a_stretch_in_which_nobody_looked_is_a_gap_and_no_zero(tmp_path: Path) -> None:
    store = Store(tmp_path)
    made = []
    for at, looks in enumerate((0, 60, 0, 60)):
        rows = [look(at * 60 - 1, 1)] if looks else []
        views = [view("activity", ACTIVITY, rows)]
        at_ns = (START_US + at * 60 * SECOND) * 1000
        made.append(store.add(views, engine="postgres", target="made:1", at_ns=at_ns, facts={}, cost={"looks": looks}))
    with Interval(store, made[0], made[-1], made) as interval:
        drawn = History(interval).over_time()
    assert drawn is not None
    middle = [
        known for at, known in zip(drawn["at_us"], drawn["sampled"], strict=True) if 65 < (at - START_US) / 1e6 < 110
    ]
    assert middle and not any(middle)


def test_samples_of_a_store_of_before_have_no_client_and_are_read(tmp_path: Path) -> None:
    with stored(tmp_path, [look(1, 1)], columns=ACTIVITY[:11]) as interval:
        assert [row["name"] for row in History(interval).averages_by("client")] == ["not recorded"]


def pair(waiter: int, blocker: int, second: float = 1, **more: Any) -> dict[str, Any]:
    return {"at_us": START_US + round(second * SECOND), "session": waiter, "blocker": blocker, **more}


def grown(*looks: Sequence[Mapping[str, Any]]) -> list[blocking.Node]:
    made = blocking.Forest()
    for rows in looks:
        made.add(rows)
    return made.roots()


def test_the_root_is_who_waits_for_nobody() -> None:
    """The first line of who blocked whom was a session that waited itself."""
    held = {"blocker_state": "idle in transaction", "blocker_statement": 5}
    (root,) = grown([pair(2, 1, **held), pair(3, 2), pair(4, 2), pair(5, 4)])
    assert (root.pids, root.blocked, root.facts["state"]) == ({1: 1}, 4, "idle in transaction")
    assert [depth for depth, _ in blocking.tree_lines(root)] == [0, 1, 2, 3]


def test_a_waiter_hangs_under_its_nearest_root_and_is_counted_once_for_it() -> None:
    """PostgreSQL names who is ahead in the queue beside who holds the lock."""
    (root,) = grown([pair(2, 1), pair(3, 1), pair(3, 2)])
    assert root.blocked == 2
    assert [depth for depth, _ in blocking.tree_lines(root)] == [0, 1]


def test_who_waits_for_two_roots_counts_for_both() -> None:
    roots = grown([pair(3, 1, blocker_usename="a"), pair(3, 2, blocker_usename="b")])
    assert [one.blocked for one in roots] == [1, 1]


def test_a_circle_has_no_root_and_is_told_as_one() -> None:
    (root,) = grown([pair(1, 2), pair(2, 1)])
    assert root.facts["state"] == blocking.CIRCLE


def test_looks_are_merged_by_what_sessions_did() -> None:
    (root,) = grown(*([pair(at, 1, statement=9)] for at in range(10, 50)))
    (_, top), (_, below) = blocking.tree_lines(root)
    assert (top.seen, below.seen, len(below.pids)) == (40, 40, 40)
    assert blocking.pids_text(below) == "10, 11, 12 and 37 more"


def test_a_prepared_transaction_is_a_root_without_a_session() -> None:
    (root,) = grown([pair(2, 0, blocker_state="prepared transaction")])
    assert blocking.pids_text(root) == "prepared"


def test_rows_some_microseconds_apart_are_one_look() -> None:
    rows = [pair(2, 1, 1.0), pair(3, 1, 1.00001), pair(2, 1, 2.0)]
    assert [len(one) for one in blocking.looks(rows)] == [2, 1]


def test_statements_of_who_blocked_have_their_texts_asked_for_first() -> None:
    seen = view("activity", ACTIVITY, [look(1, 1, statement=7)] * 9)
    held = view("blocked", BLOCKED, [pair(2, 1, statement=8, blocker_statement=9)])
    assert statements_of([seen, held]) == ["8", "9", "7"]


def test_roots_are_ranked_by_session_seconds(tmp_path: Path) -> None:
    rows = [pair(2, 1, s, blocker_usename="short") for s in (1, 2)]
    rows += [pair(at, 9, s, blocker_usename="long") for s in (11, 12, 13) for at in (5, 6)]
    with stored(tmp_path, [], rows) as interval:
        ranked = blocking.section(interval, 10)["tables"][0]["rows"]
    assert [(row["user"], row["blocked"] / 1e9) for row in ranked] == [("long", 6), ("short", 2)]


@pytest.mark.parametrize("hours", [0.01, 0.5, 3, 30, 24 * 40])
def test_the_clocks_axis_has_whole_times_that_fit(hours: float) -> None:
    low = START_US / 1e6
    found, step = clock.ticks(low, low + hours * 3600, 9)
    assert 1 <= len(found) <= 10
    assert all(one % step == 0 for one in found)
    labels = [clock.label(one, step) for one in found]
    assert all(one != following for one, following in pairwise(labels))


def test_the_figure_of_nobody_is_none() -> None:
    assert session_history.draw({"at_us": [], "classes": []}) is None


@pytest.fixture(scope="module")
def planted(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Watch a real server with a dropped index, a changed setting, a checkpoint, a vacuum, and a chain of locks."""
    with Lab(engine, tmp_path_factory.mktemp("planted") / "snaps") as lab:
        lab.run("create table held (id int primary key, v int)", "insert into held values (1, 1)")
        lab.run("create index held_v on held (v)")
        threads = []
        with contextlib.closing(lab.connect(application_name="holder")) as holder:
            holder.execute("begin")
            holder.execute("update held set v = 2")
            for name in ("second", "third"):
                threads.append(threading.Thread(target=_waits, args=(lab, name)))
                threads[-1].start()
                time.sleep(0.3)
            events = threading.Timer(0.5, lab.run, ["drop table if exists nothing", "checkpoint", "vacuum pg_class"])
            lab.run("create table other (id int)", "create index other_id on other (id)")
            looking = watch(lab.dsn, lab.store, Options(), every_s=1.5, for_s=120, sample_s=0.05)
            taken = [next(looking)]
            events.start()
            lab.run("drop index other_id", "alter system set work_mem = '9MB'", "select pg_reload_conf()")
            lab.run("vacuum other")
            over = False
            for one in looking:  # three at least, and the last one after all that is planted
                taken.append(one)
                if over and len(taken) > 2:
                    break
                over = not events.is_alive()
            looking.close()
            pid = holder.info.backend_pid
            holder.execute("commit")
        for thread in [*threads, events]:
            thread.join()
        lab.run("alter system reset work_mem", "select pg_reload_conf()", "drop table held", "drop table other")
        with lab.between(taken[0], taken[-1]) as interval:
            yield lab, taken, pid, report(interval), timeline.events(interval)


def _waits(lab: Lab, name: str) -> None:
    with contextlib.closing(lab.connect(application_name=name)) as waiter:
        waiter.execute("update held set v = v + 1")


def test_a_report_names_the_root_blocker_and_what_it_did_last(planted: Any, major: int) -> None:
    _, _, pid, model, _ = planted
    roots, trees = section(model, "blocking")["tables"]
    row = roots["rows"][0]
    assert (row["pid"], row["state"], row["application"]) == (str(pid), "idle in transaction", "holder")
    assert row["blocked"] > 3e9, "two sessions for at least two looks"
    assert [line.get("depth") for line in trees["rows"]] == [0, 1, 2]
    assert trees["rows"][2]["object"] == "public.held"
    if major >= 14:
        assert "update held set v" in row["text"]


def test_a_report_has_the_active_sessions_and_its_page_draws_them(planted: Any) -> None:
    _, _, _, model, _ = planted
    made = section(model, "sessions")
    by_application = next(t for t in made["tables"] if t["title"] == "By application")
    assert {row["name"]: row["mostly"] for row in by_application["rows"]} | {"second": "lock 100 %"} == {
        row["name"]: row["mostly"] for row in by_application["rows"]
    }
    for look_ in (WIDE, NARROW):
        assert session_history.draw(made["drawn"], look_) is not None
    assert "Active sessions by wait class" in render_html(json.loads(json.dumps(model)))


def test_what_happened_stands_on_the_clock(planted: Any) -> None:
    *_, found = planted
    told = [(one["kind"], one["what"]) for one in found]
    assert ("object", "index public.other_id was dropped") in told
    assert ("vacuum", "vacuum of public.other") in told
    assert any(kind == "checkpoint" for kind, _ in told)
    assert any(kind == "setting" and what.startswith("work_mem") for kind, what in told)
    assert all(one["after_us"] is None or one["after_us"] < one["at_us"] for one in found)


def test_active_sessions_of_a_comparison_are_the_sampled_ones(planted: Any) -> None:
    """A chart showed 16.3 where four sessions were: their time is counted when a statement ends."""
    _, _, _, model, _ = planted
    (aas,) = [one for one in model["series"]["metrics"] if one["name"] == "aas"]
    assert all(1.5 < value < 4 for value in aas["values"] if value is not None)


def test_the_command_groups_and_filters(planted: Any) -> None:
    lab, taken, *_ = planted
    ends = (str(taken[0].number), str(taken[-1].number), "--store", str(lab.store.folder))
    done = succeeded("snap", "sessions", *ends, "--by", "application", "--where", "class=lock", "--format", "json")
    model = json.loads(done.stdout)
    assert {row["name"] for row in model["sections"][0]["tables"][0]["rows"]} == {"second", "third"}
    text = dbdyno("snap", "sessions", *ends, COLUMNS="180").stdout
    assert "Root blockers" in text and "update held" in text, text


def test_a_filter_that_is_none_is_refused_with_those_there_are(tmp_path: Path) -> None:
    done = dbdyno("snap", "sessions", "1", "2", "--where", "colour=red", "--store", str(tmp_path))
    assert done.returncode == 2
    assert "NAME=VALUE" in done.stderr and "application" in done.stderr


def test_without_samples_a_page_says_what_would_give_them(lab: Lab) -> None:
    first, last = lab.take(), lab.take()
    with lab.between(first, last) as interval:
        model = sessions(interval, "user", {}, 10)
    assert [one["not_measured"][0]["next"].startswith("dbdyno snap watch") for one in model["sections"]] == [True, True]
