"""The time zone in which times are shown: UTC as in reports, the browser's time zone, or the server's.

The choice is in a cookie that the switch in the page's head sets; addresses, files and commands are always in UTC.
Charts are drawn in that zone (`clock.ZONE`). In the text of a page each time that has a date is converted, but not in
code, statements and input fields.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from starlette.requests import Request

from dbdyno.base.errors import Error
from dbdyno.report import figures
from dbdyno.report.figures import clock
from dbdyno.snapshot.reading.server_zone import server_zone
from dbdyno.ui import drawing
from dbdyno.ui.routes.common import server_of

COOKIE = "dbdyno-zone"
SERVER = "server"
_NAME = re.compile(r"[A-Za-z][\w+-]*(?:/[\w+-]+){0,2}")
_TAG = re.compile(r"(<[^<>]*+>)")
_UNCHANGED = ("code", "pre", "textarea", "script", "style", "title", "select")
_MOMENT = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d)(?P<second>:\d\d)?(?P<part>\.\d{1,9})?"
    r"(?P<zone> UTC|\+00:00)?(?![\d:-])"
    r"|(?<![\d:-])(?P<alone>\d\d:\d\d)(?P<rest>:\d\d)? UTC\b|\(UTC\)"
)


def zone_of(request: Request) -> tzinfo:
    """Return the time zone that the reader has chosen; UTC if this machine does not know that zone."""
    name = request.cookies.get(COOKIE, "")
    if name == SERVER:
        name = ""
        with contextlib.suppress(Error):  # of several servers, or of none
            server = server_of(request)
            last = server.store.last(server.target)
            name = server_zone(last) if last is not None else ""
    if not _NAME.fullmatch(name) or name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return UTC


@contextlib.contextmanager
def draw_in_zone(zone: tzinfo) -> Iterator[None]:
    """Draw charts in a time zone inside the `with` block; charts that need Vega are drawn in another process."""
    zone_before, drawer_before = clock.ZONE.set(zone), figures.ELSEWHERE.set(drawing.draw_figure)
    try:
        yield
    finally:
        clock.ZONE.reset(zone_before)
        figures.ELSEWHERE.reset(drawer_before)


def convert_times(page: str, zone: tzinfo) -> str:
    """Return a page with the times in its text converted from UTC to a time zone."""
    if zone is UTC:
        return page
    inside = 0
    near = [datetime.now(UTC)]
    pieces = _TAG.split(page)
    for at, piece in enumerate(pieces):
        if piece.startswith("<"):
            name = piece.strip("</>").split(" ", 1)[0].lower()
            if name in _UNCHANGED and not piece.endswith("/>"):
                inside = max(inside + (-1 if piece.startswith("</") else 1), 0)
        elif not inside and (":" in piece or "(UTC)" in piece):
            pieces[at] = _MOMENT.sub(lambda found: _convert(found, zone, near), piece)
    return "".join(pieces)


def _convert(match: re.Match[str], zone: tzinfo, near: list[datetime]) -> str:
    """Return a matched UTC time converted to the zone.

    `near[0]` is the last time that had a date; its UTC offset is used for times without a date.
    """
    if match[0] == "(UTC)":
        return f"({near[0].astimezone(zone).tzname()})"
    if match["alone"]:
        offset = near[0].astimezone(zone).utcoffset() or timedelta(0)
        at = datetime.strptime(match["alone"] + (match["rest"] or ":00"), "%H:%M:%S").replace(tzinfo=UTC) + offset
        return at.strftime("%H:%M:%S" if match["rest"] else "%H:%M") + f" {near[0].astimezone(zone).tzname()}"
    try:
        at = datetime.fromisoformat(f"{match['day']}T{match['time']}{match['second'] or ''}+00:00")
    except ValueError:
        return match[0]
    near[0] = at
    there = at.astimezone(zone)
    name = f" {there.tzname()}" if match["zone"] else ""
    return there.strftime("%Y-%m-%d %H:%M" + (":%S" if match["second"] else "")) + (match["part"] or "") + name
