"""The home page: servers with a small chart each, what is running, and the newest runs with their verdicts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from starlette.requests import Request

from dbdyno.base.errors import Error
from dbdyno.page import Cell, Finding, Head, Page, Row, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import page_of
from dbdyno.pages.common import columns, table, with_noun
from dbdyno.snapshot.reading.recent_activity import RecentActivity, recent_activity
from dbdyno.ui.places import Places, Server
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.common import NO_RUN, RUN_COLUMNS, list_section, places_of, run_row, server_address, server_name
from dbdyno.ui.routes.run import cached_model
from dbdyno.ui.stretch import DEFAULT, stretch_of
from dbdyno.ui.view import View, address

NEWEST = 8
RUNNING = "At work"
LATE_INTERVALS = 2.5
"""Number of intervals after its last snapshot until which a watch counts as running."""
SHORTEST_NS = 10 * 10**9
NO_SERVER = "There are no snapshots here. Take them with `dbdyno snap watch --target DSN --every 60s`."
_SERVERS = columns("server:text engine:text lately:spark:the_last_day now:number3 last:text:last_snapshot")
_MOVES = columns("move:text result:verdict says:text:what_it_says")
_SAVED = columns("page:text:page kind:text result:verdict says:text:what_it_says")
_LATELY: ResultCache[RecentActivity | None] = ResultCache(256)


def view(request: Request) -> View:
    """Return the home page."""
    places = places_of(request)
    runs = places.runs()
    running = [run for run in runs if run.status == "running"]
    known = places.servers()
    servers = [_server(one) for one in known]
    moves = [_move(one) for one in places.jobs()]
    watches = [row for row in map(_watch, known) if row is not None]
    under_way = [*map(run_row, running), *watches, *(_running_move(one) for one in moves if _is_running(one))]
    shown = (
        list_section("servers", "Servers", table("", _SERVERS, servers, look="loose"), NO_SERVER),
        list_section("running", "Running now", table("", RUN_COLUMNS, under_way, look="loose")),
        list_section(
            "newest",
            "Newest runs",
            table("", RUN_COLUMNS, map(run_row, runs[: -NEWEST - 1 : -1]), look="loose"),
            NO_RUN,
        ),
        list_section("moves", "Moves", table("", _MOVES, moves, look="loose")),
        list_section("saved", "Saved pages", table("", _SAVED, _saved_pages(places), look="loose")),
        *_refused_section(places),
    )
    chips = (with_noun(len(servers), "server"), with_noun(len(runs), "run"), with_noun(len(running), "running run"))
    head = Head("Laboratory", _title(places), name="home", chips=tuple(one for one in chips if one), section="Home")
    return View(
        Page(head, shown),
        follows="runs stores sums",
        later="/latest?part=1" if servers else "",
        waiting="Judging the last day of each server…",
    )


def _refused_section(places: Places) -> Iterator[Section]:
    """Yield the section about folders that are not shown, if there are any."""
    findings = tuple(
        Finding(f"{fmt.line(one.where, 160)} {one.message}", "doubt", next=one.next_step or "")
        for one in places.refusals()
    )
    if findings:
        yield Section("refused", "Not shown", findings=findings)


def _title(places: Places) -> str:
    name = places.runs_folder.absolute().parent.name
    return fmt.line(name or "dbdyno", 80)


def _server(server: Server) -> Row:
    """Return a server's row: linked name, the last day as a small chart, and its last snapshot."""
    snapshots = server.snapshots()
    last = snapshots[-1]
    state = (last.number, len(snapshots))
    try:
        server.prepare(stretch_of(snapshots, DEFAULT).chain if len(snapshots) > 1 else [])
        found = _LATELY.get(
            f"{server.store.folder} {server.target}", state, lambda: recent_activity(server.store, snapshots)
        )
        problem = ""
    except Error as error:
        found, problem = None, fmt.line(error.message, 120)
    known = [value for value in found.values if value is not None] if found else []
    version = str(last.facts.get("version") or "").split(" ")[0]
    cells = {
        "server": Cell(server_name(server), href=server_address("/server", server)),
        "engine": fmt.line(f"{last.engine} {version}", 40),
        "lately": [value or 0.0 for value in found.values] if found else None,
        "now": Cell(known[-1] if known else None, notes=(found.label,) if found else ()),
        "last": Cell(f"{last.at_utc:%Y-%m-%d %H:%M} UTC", notes=(problem,) if problem else ()),
    }
    return Row(cells)


def _move(folder: Path) -> Row:
    """Return a move's row: linked folder name and result."""
    try:
        head = page_of(cached_model(folder)).head
        cell = Cell(head.word, tone=head.tone)
        said = head.headline or head.title
    except Error as error:
        cell, said = Cell("cannot be read", tone="doubt"), fmt.line(error.message, 80)
    name = Cell(fmt.line(folder.name, 80), href=address("/run", job=folder.name))
    return Row({"move": name, "result": cell, "says": said})


def _running_move(row: Row) -> Row:
    """Return a move's row for the list of running work."""
    return Row(
        {"run": row.cells["move"], "started": "", "kind": "move", "status": "running", "headline": row.cells["says"]}
    )


def _is_running(row: Row) -> bool:
    result = row.cells["result"]
    return isinstance(result, Cell) and result.value == RUNNING


def _watch(server: Server) -> Row | None:
    """Return the row of a server's `snap watch`; None if the last snapshot is older than `LATE_INTERVALS` intervals."""
    snapshots = server.snapshots()
    if len(snapshots) < 2:
        return None
    last = snapshots[-1]
    every_ns, ago_ns = last.at_ns - snapshots[-2].at_ns, time.time_ns() - last.at_ns
    if not 0 <= ago_ns < LATE_INTERVALS * max(every_ns, SHORTEST_NS):
        return None
    name = Cell(server_name(server), href=server_address("/server", server, window="1h"))
    says = f"a snapshot every {fmt.duration(every_ns)}; number {last.number}, {fmt.duration(ago_ns, 2)} ago"
    return Row({"run": name, "started": "", "kind": "watch", "status": "running", "headline": says})


def _saved_pages(places: Places) -> Iterator[Row]:
    """Yield a row for each page that a command has saved as JSON."""
    for name, model in places.saved_pages().items():
        try:
            head = page_of(model).head
        except Error:
            continue
        link = Cell(fmt.line(name, 80), href=address("/saved", name=name))
        cells = {"page": link, "kind": head.kind, "result": Cell(head.word, tone=head.tone)}
        yield Row({**cells, "says": head.headline or head.title})
