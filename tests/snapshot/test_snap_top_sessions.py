"""`dbdyno snap top` on sessions: the list, the blocking sessions, progress, plans, keys, and recorded values."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from snapshot_help import Lab
from test_snap_top import Terminal

from command_line import dbdyno, succeeded
from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.cli.snap.top_keys import VIEWS, ScreenState, split
from dbdyno.report.live import render_frame
from dbdyno.report.live_sessions import sessions as show_sessions
from dbdyno.report.live_sessions import show_blocking
from dbdyno.snapshot.engines.live_sessions import SORTS, blocking_tree, select_sessions
from dbdyno.snapshot.engines.postgres.live import PostgresLive
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Store
from together import together
from waiting import until


def session(pid: int, **more: Any) -> dict[str, Any]:
    names = ("user", "database", "application", "client", "state", "wait", "statement_us", "transaction_us")
    return {**dict.fromkeys(names), "pid": pid, "blockers": None, "query": "", **more}


def test_the_longest_statement_comes_first_and_one_without_last() -> None:
    rows = [session(1), session(2, statement_us=5), session(3, statement_us=9)]
    assert [row["pid"] for row in select_sessions(rows, "time")] == [3, 2, 1]


def test_a_filter_finds_words_anywhere_in_any_case() -> None:
    rows = [session(1, user="App"), session(2, query="select app"), session(3, wait="Lock:tuple")]
    assert [row["pid"] for row in select_sessions(rows, "user", "app")] == [1, 2]


def test_every_session_that_waits_hangs_under_its_nearest_blocker() -> None:
    rows = [session(1), session(2, blockers=[1]), session(3, blockers=[1, 2]), session(4, blockers=[2])]
    assert [(depth, row["pid"]) for depth, row in blocking_tree(rows)] == [(0, 1), (1, 2), (2, 4), (1, 3)]


def test_all_but_the_last_below_a_blocker_are_drawn_with_a_branch_that_goes_on() -> None:
    rows = [session(1), *(session(pid, blockers=[1]) for pid in (2, 3)), session(4, blockers=[2])]
    with io.StringIO() as file:
        show_blocking(Console(file=file, width=100), blocking_tree(rows))
        lines = file.getvalue().splitlines()
    assert [line.split()[0] + line.split()[1] for line in lines if "─ " in line] == ["├─2", "│└─", "└─3"]


@pytest.mark.parametrize(("width", "age", "shown"), [(120, 789, True), (100, 789, False), (120, None, False)])
def test_a_wide_screen_shows_the_age_of_horizons_if_a_session_has_one(width: int, age: int | None, shown: bool) -> None:
    with io.StringIO() as file:
        show_sessions(Console(file=file, width=width), [session(1, horizon_age=age), session(2)], "")
        said = file.getvalue()
    assert ("horizon" in said, "789" in said) == (shown, shown)


def test_a_circle_and_a_prepared_transaction_are_shown() -> None:
    rows = [session(1, blockers=[2]), session(2, blockers=[1]), session(3, blockers=[0])]
    assert [(depth, row["pid"]) for depth, row in blocking_tree(rows)] == [(0, 0), (1, 3), (0, 1), (1, 2)]


def test_nobody_who_waits_means_no_tree() -> None:
    assert blocking_tree([session(1), session(2)]) == []


def test_keys_choose_the_part_the_order_and_the_filter() -> None:
    desk = ScreenState()
    for key, view in VIEWS.items():
        assert (desk.press(key), desk.view) == ("draw", view)
    assert (desk.press("s"), desk.sort) == ("draw", SORTS[1])
    assert [desk.press(key) for key in ("f", "xy", "\x15", "ap", "p", "\x7f", "\r")] == ["draw"] * 7
    assert desk.words == "ap"
    assert (desk.press("\x1b"), desk.words, desk.press("\x1b")) == ("draw", "", "quit")


def test_keys_that_arrive_together_count_one_by_one() -> None:
    assert split("e47\r") == ["e", "4", "7", "\r"]
    assert split("\x1b[A") == ["\x1b[A"]
    assert split("\x1b[Bj\x1bOAq") == ["\x1b[B", "j", "\x1bOA", "q"]


def test_a_pause_and_a_refresh() -> None:
    desk = ScreenState()
    assert (desk.press("p"), desk.paused, "PAUSED" in desk.foot()) == ("draw", True, True)
    assert desk.press(" ") == "read"


def test_a_plan_is_asked_for_by_pid_and_words_are_none() -> None:
    desk = ScreenState()
    assert [desk.press(key) for key in ("e", "47", "11", "\r")][-1] == "plan"
    assert desk.pid == 4711
    for key in ("e", "x", "\r"):
        desk.press(key)
    assert "is not a pid" in desk.foot()


def test_arrows_choose_a_session_that_questions_begin_with() -> None:
    desk = ScreenState(view="sessions", listed=[11, 12, 13])
    for key, pid in (("\x1b[B", 11), ("j", 12), ("\x1b[B", 13), ("\x1b[B", 13), ("k", 12)):
        assert (desk.press(key), desk.chosen) == ("draw", pid)
    assert (desk.press("v"), desk.foot()) == ("draw", "statement of which pid? 12_")
    assert (desk.press("\r"), desk.pid) == ("statement", 12)
    desk.listed = [11]
    assert (desk.press("e"), desk.foot()) == ("draw", "plan of which pid? _"), "a session that has gone is not offered"


def test_the_pace_and_the_help() -> None:
    desk = ScreenState(every_s=1.0)
    assert [(desk.press(key), desk.every_s)[1] for key in "+--- "[:4]] == [2.0, 1.0, 0.5, 0.5]
    assert desk.press("h") == "draw" and any(line.startswith("v: ") for line in desk.plan)
    assert desk.press("x") == "draw" and not desk.plan


def test_nothing_is_cancelled_unless_allowed_and_confirmed() -> None:
    desk = ScreenState()
    assert desk.press("c") == "draw" and "--allow-cancel" in desk.foot()
    desk = ScreenState(allow_cancel=True)
    for answer, action in (("n", "draw"), ("\r", "draw"), ("y", "cancel")):
        assert [desk.press(key) for key in ("c", "12", "\r")] == ["draw"] * 3
        assert "12? y/n" in desk.foot()
        assert desk.press(answer) == action


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("view", [*VIEWS.values(), "all"])
def test_every_part_fits_its_screen_and_texts_cannot_command_it(width: int, view: str) -> None:
    rows = [
        session(1, user="u" * 70, state="idle in transaction", transaction_us=3_700_000_000),
        session(2, blockers=[1], query="select '\x1b[2J' " * 40, wait="Lock:transactionid", statement_us=1500),
    ]
    empty: JsonObject = {"profile": [], "states": {}, "notes": [], "classes": None, "statements": None}
    frame = empty | {
        "title": "made",
        "at": "12:00",
        "seconds": 1.0,
        "listed": "",
        "view": view,
        "sessions": rows,
        "tree": blocking_tree(rows),
        "progress": [{"pid": 2, "what": "vacuum", "phase": "scanning heap", "done": 0.5, "on": "t"}],
    }
    lines = render_frame(frame, width=width, height=20, color=False, foot="q").split("\n")
    assert len(lines) == 20 and max(map(len, lines)) <= width
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("view", ["sessions", "blocking"])
def test_a_screen_shows_the_first_lines_of_a_longer_list(view: str) -> None:
    rows = [session(number + 1, blockers=[1] if number else [], query=f"select {number}") for number in range(90)]
    empty: JsonObject = {"profile": [], "states": {}, "notes": [], "classes": None, "statements": None}
    frame = empty | {"title": "made", "at": "12:00", "seconds": 1.0, "listed": "", "view": view, "progress": []}
    frame |= {"sessions": rows, "tree": blocking_tree(rows)}
    whole = render_frame(frame, width=120, height=None, color=False).split("\n")
    assert len(whole) > 90
    assert render_frame(frame, width=120, height=50, color=False, foot="q").split("\n") == [*whole[:49], "q"]


@pytest.fixture(scope="module")
def held(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lab, int, int]]:
    """Yield a server on which one session blocks another, and their process IDs."""
    with Lab(engine, tmp_path_factory.mktemp("top") / "snaps") as lab:
        lab.run("create table kept (id int primary key, v int)", "insert into kept values (1, 1)")
        with (
            contextlib.closing(lab.connect(application_name="holder")) as holder,
            contextlib.closing(lab.connect(application_name="waits")) as waiter,
        ):
            holder.execute("begin")
            holder.execute("update kept set v = 2 where 'secret' = 'secret'")
            with together(partial(_waits, waiter)):
                with PostgresLive(lab.dsn, Options()) as live:
                    assert until(lambda: any(row["blockers"] for row in live.sessions()))
                yield lab, holder.info.backend_pid, waiter.info.backend_pid
                holder.execute("commit")
        lab.run("drop table kept")


def _waits(waiter: Any) -> None:
    with contextlib.suppress(Exception):
        waiter.execute("with changed as (update kept set v = 3 where id = 1 returning v) select v from changed")


def test_sessions_have_their_blockers_and_texts_without_what_stands_in_quotes(held: tuple[Lab, int, int]) -> None:
    lab, holder, waiter = held
    with PostgresLive(lab.dsn, Options()) as live:
        rows = {row["pid"]: row for row in live.sessions()}
        assert live.progress() == []
    assert rows[waiter]["blockers"] == [holder]
    assert rows[waiter]["wait"].startswith("Lock:")
    assert rows[holder]["state"] == "idle in transaction" and rows[holder]["transaction_us"] > 0
    assert rows[holder]["horizon_age"] >= 1, "its own transaction is the oldest"
    assert rows[holder]["query"] == "update kept set v = 2 where '?' = '?'"


def test_a_plan_is_shown_and_nothing_is_run_for_it(held: tuple[Lab, int, int]) -> None:
    lab, holder, waiter = held
    with PostgresLive(lab.dsn, Options()) as live:
        lines = live.plan(waiter)
        assert any("kept" in line for line in lines), lines
        assert any("Update on kept" in line for line in live.plan(holder))
        with contextlib.closing(lab.connect()) as listening:
            listening.execute("listen nothing")
            with pytest.raises(SnapshotError, match="only SELECT, INSERT"):
                live.plan(listening.info.backend_pid)
        with pytest.raises(SnapshotError, match="there is no session 1,"):
            live.plan(1)


def test_a_second_statement_behind_the_first_is_never_run(held: tuple[Lab, int, int]) -> None:
    """What another session sends is hostile: it stands behind EXPLAIN only where it is one statement."""
    lab, *_ = held
    with contextlib.closing(lab.connect(application_name="hostile")) as hostile:
        text = "select 1; commit; create table owned (id int); select pg_sleep(60)"
        pid = hostile.info.backend_pid
        thread = threading.Thread(target=_sent, args=(hostile, text))
        thread.start()
        with PostgresLive(lab.dsn, Options()) as live:
            assert until(lambda: any(row["pid"] == pid and row["state"] == "active" for row in live.sessions()))
            lab.run("drop table if exists owned")
            with pytest.raises(SnapshotError, match="multiple commands"):
                live.plan(pid)
            with contextlib.closing(lab.connect()) as asked:
                assert asked.execute("select to_regclass('owned')").fetchone() == (None,)
            assert live.cancel(pid)
        thread.join()


def _sent(connection: Any, text: str) -> None:
    with contextlib.suppress(Exception):
        connection.execute(text)


def test_once_prints_all_parts_and_records_samples_of_the_store(held: tuple[Lab, int, int], tmp_path: Path) -> None:
    lab, holder, waiter = held
    folder = tmp_path / "kept"
    done = succeeded(
        *("snap", "top", "--target", lab.dsn, "--once", "--every", "1s", "--sample", "50ms", "--record", folder)
    )
    assert "Who blocks whom, 1 root, 1 waiting" in done.stdout
    assert f"└─ {waiter}" in done.stdout and str(holder) in done.stdout
    first, last = Store(folder)
    assert last.manifest["cost"]["looks"] > 0
    shown = dbdyno("snap", "sessions", str(first.number), str(last.number), "--store", folder)
    assert "Root blockers" in shown.stdout and str(holder) in shown.stdout


def test_keys_work_on_a_terminal(held: tuple[Lab, int, int]) -> None:
    lab, _, waiter = held
    terminal = Terminal(lab.dsn)
    terminal.until("Active sessions")
    terminal.press(f"3e{waiter}\r")
    terminal.until(f"Plan of session {waiter}")
    terminal.press("c")
    terminal.until("--allow-cancel")
    terminal.press("\x1b[Bv\r")
    terminal.until("Statement of session")
    terminal.press("q")
    assert terminal.end() == 0
