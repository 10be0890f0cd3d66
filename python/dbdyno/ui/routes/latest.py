"""The last day of all servers: events, and advice with the most severe finding first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from starlette.requests import Request

from dbdyno.base.errors import Error
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Row as Event
from dbdyno.page import Cell, Column, Head, Page, Row, Section, Tone
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns, table
from dbdyno.snapshot.reading.long_timeline import long_events
from dbdyno.ui.places import Server
from dbdyno.ui.result_cache import ResultCache
from dbdyno.ui.routes.advice import advice_of
from dbdyno.ui.routes.common import HOME, parameter, places_of, server_address, server_name
from dbdyno.ui.stretch import DEFAULT, Stretch, iso, stretch_of
from dbdyno.ui.view import View

SHOWN = 12
AROUND_US = 15 * 60 * 10**6
"""Length of time before and after an event that the link to the event shows [us]."""
NOTABLE = ("restart", "reset", "setting", "object")
"""Kinds of events that are listed; checkpoints and vacuums appear only in charts."""
_ADVICE = columns("level:verdict finding:text:finding server:text stake:share:at_stake")
_EVENTS = columns("at:time:seen_at kind:text what:text:what_happened server:text")
_TONES: dict[str, Tone] = {"critical": "bad", "warning": "doubt", "hint": "even"}
_KNOWN: ResultCache[list[Event]] = ResultCache(64)


def view(request: Request) -> View:
    """Return the events and advice of the last day of every server."""
    places = places_of(request)
    events: list[tuple[int, Row]] = []
    advice: list[tuple[int, Row]] = []
    notes = []
    for server in places.servers():
        try:
            stretch = stretch_of(server.snapshots(), DEFAULT)
            events += ((one["at_us"], _event(server, one)) for one in _events(server, stretch))
            advice += _findings(server, stretch)
        except Error as error:
            notes.append(f"{server_name(server)}: {fmt.line(error.message, 160)}")
    sections = (
        _list_section("advice", "Advice on the last day", _ADVICE, sorted(advice, key=lambda one: one[0]), notes),
        _list_section(
            "events", "What happened in the last day", _EVENTS, sorted(events, key=lambda one: -one[0]), notes
        ),
    )
    head = Head("Latest", "", name="latest", headline="The last day of all servers", section="Latest")
    return View(
        Page(head, sections),
        trail=(HOME,),
        bare=bool(parameter(request, "part")),
        follows="stores",
    )


def _list_section(
    name: str, title: str, columns: Sequence[Column], rows: list[tuple[int, Row]], notes: list[str]
) -> Section:
    left = max(len(rows) - SHOWN, 0)
    made = table("", columns, [row for _, row in rows[:SHOWN]], look="loose", left_out=left)
    said = notes if rows or notes else ["Nothing."]
    return Section(name, title, tables=(made,) if rows else (), notes=tuple(said))


def _events(server: Server, stretch: Stretch) -> list[Event]:
    """Return the events in an interval, without checkpoints and vacuums."""
    return server.model(
        _KNOWN, stretch, lambda interval: [one for one in long_events(interval) if one["kind"] in NOTABLE]
    )


def _event(server: Server, event: Event) -> Row:
    at_us = event["at_us"]
    around = f"{iso(at_us - AROUND_US)}..{iso(at_us + AROUND_US)}"
    place = server_address("/server", server, window="1d", stretch=around)
    what = Cell(fmt.line(event["what"], 160), href=place)
    return Row({"at": at_us, "kind": event["kind"], "what": what, "server": server_name(server)})


def _findings(server: Server, stretch: Stretch) -> Iterator[tuple[int, Row]]:
    """Yield the findings of the advice on an interval with their severity (0 is the most severe)."""
    for one in advice_of(server, stretch)["findings"]:
        yield list(_TONES).index(one["level"]), _finding(server, stretch, one)


def _finding(server: Server, stretch: Stretch, one: JsonObject) -> Row:
    where = server_address("/advice", server, stretch=stretch.text) + f"#advice-{one['number']}"
    return Row(
        {
            "level": Cell(one["level"], tone=_TONES.get(str(one["level"]), "")),
            "finding": Cell(fmt.line(one["sentence"], 220), href=where),
            "server": Cell(server_name(server), href=server_address("/server", server)),
            "stake": one["stake"],
        }
    )
