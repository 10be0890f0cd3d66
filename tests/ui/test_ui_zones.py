"""The reader's time zone: UTC unless chosen; it changes only displayed times, never an address, a file or a command."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from asking import Browser, Seen

from dbdyno.report.figures import clock
from dbdyno.ui.zones import convert_times, draw_in_zone

pytestmark = pytest.mark.drawn(drawn=False)
BERLIN = ZoneInfo("Europe/Berlin")
QUEUE = "stretch=2026-11-26T14:02..2026-11-26T14:12"


def test_moments_of_a_page_are_converted_with_their_zone_and_code_is_not() -> None:
    page = "<p>from 2026-11-26 23:30:00 UTC to 23:45 UTC <code>2026-11-26 23:30:00 UTC</code> at 2026-07-01 12:00</p>"
    assert convert_times(page, BERLIN) == (
        "<p>from 2026-11-27 00:30:00 CET to 00:45 CET <code>2026-11-26 23:30:00 UTC</code> at 2026-07-01 14:00</p>"
    )


def test_what_is_no_moment_stays_as_it_is() -> None:
    page = '<a href="/x?stretch=2026-11-26T14:02:00..">2026-99-26 14:02:00 and 10.0.0.1:5432, 1:2:3</a>'
    assert convert_times(page, BERLIN) == page


def test_ticks_are_on_whole_hours_of_the_zone_even_where_that_is_half_an_hour_off() -> None:
    low = 1_795_000_000.0
    with draw_in_zone(ZoneInfo("Asia/Kolkata")):
        found, step = clock.ticks(low, low + 6 * 3600, 9)
        assert step == 3600
        assert all(clock.label(at, step).endswith(":00") or "-" in clock.label(at, step) for at in found)
    assert clock.zone_name() == "UTC"


def test_the_switch_shows_the_browser_s_zone_or_the_server_s(browser_of: Browser) -> None:
    address = f"/server?{QUEUE}"
    plain = browser_of.get(address)
    assert "14:02:00 to" in Seen(plain.text).words
    for zone, first in (("America/New_York", "09:02:00 to"), ("server", "15:02:00 to")):
        shown = browser_of.get(address, zone=zone)
        words = Seen(shown.text).words
        assert first in words and "14:02:00 to" not in words
        assert Seen(shown.text).links == Seen(plain.text).links, "addresses stay in UTC"
        assert browser_of.get(f"{address}&format=json", zone=zone).body == browser_of.get(f"{address}&format=json").body


@pytest.mark.parametrize("name", ("../../etc/passwd", "Nowhere/Land", "x" * 500, "", "UTC"))
def test_a_zone_that_is_none_is_utc(browser_of: Browser, name: str) -> None:
    assert "14:02:00 to" in Seen(browser_of.get(f"/server?{QUEUE}", zone=name).text).words
