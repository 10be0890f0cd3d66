"""Reported times that are too short are detected: in a closed loop, a session's transactions fill all of its time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_client_protocol import PRETENDED, job

from dbdyno.bench.clients import stream
from dbdyno.bench.clients.load import ClientArm
from dbdyno.bench.clients.process import ClientLostError
from dbdyno.bench.clients.reader import RECORD, Records, SliceRequest
from dbdyno.bench.clients.time_coverage import LEAST_SHARE, TRANSIT_NS, TimeCoverage

MS = 1_000_000


def records(*rows: tuple[int, int, int], code: str = "") -> Records:
    """Return records of transactions, each given by session, start and elapsed time [ms]."""
    made = np.zeros(len(rows), RECORD)
    made["kind"], made["code"] = stream.TRANSACTION, code.encode()
    for name, column in zip(("session", "started_ns", "elapsed_ns"), zip(*rows, strict=True), strict=True):
        made[name] = column
    for name in ("started_ns", "elapsed_ns"):
        made[name] *= MS
    return made


def share(own: Records, length_ms: int | None = 1_000, sessions: int = 1, heard_ms: int = 1_000) -> float | None:
    """Return the share of a slice's time that its records explain; the slice began at 0."""
    asked = SliceRequest(1, sessions, 1, 1, None)
    asked.sent_ns, asked.heard_ns = 0, heard_ms * MS
    accounted = TimeCoverage()
    end = stream.Record(stream.END, started_ns=0, elapsed_ns=heard_ms * MS, rows=len(own))
    accounted.add(own, end, asked, None if length_ms is None else length_ms * MS)
    return accounted.share()


def chain(session: int, each_ms: int, told: float = 1.0, gap_ms: int = 0) -> list[tuple[int, int, int]]:
    """Return the transactions of a session that works for a second and reports only the share `told` of each time."""
    return [(session, at, round(each_ms * told)) for at in range(0, 1_000, each_ms + gap_ms)]


@pytest.mark.parametrize("told", [1.0, 0.9, 0.5, 0.1])
def test_a_session_is_held_to_its_time(told: float):
    assert share(records(*chain(0, 10, told))) == pytest.approx(told)


def test_sessions_that_hide_each_others_gaps_are_held_to_their_own_time():
    """Together eight sessions leave hardly a gap."""
    rows = [(session, at + session, 5) for session in range(8) for at in range(0, 1_000, 10)]
    assert share(records(*rows), sessions=8) == pytest.approx(0.5)


def test_sessions_that_take_turns_share_one_thread():
    rows = [(at // 10 % 4, at, 10) for at in range(0, 1_000, 10)]
    assert share(records(*rows), sessions=4) == pytest.approx(1.0)
    assert share(records(*[(own, at, 5) for own, at, _ in rows]), sessions=4) == pytest.approx(0.5)


def test_times_that_shrink_towards_the_beginning_leave_the_rest_of_the_slice():
    assert share(records(*[(0, at, 5) for at in range(0, 500, 5)])) == pytest.approx(0.5)


def test_a_transaction_longer_than_its_slice_is_held_to_when_its_end_was_heard():
    """It tells more than the slice's length, and less than the time until it was done."""
    found = share(records((0, 0, 400)), length_ms=50, heard_ms=2_000)
    assert found == pytest.approx(0.4, abs=0.01) and TRANSIT_NS == 1_000 * MS
    assert share(records((0, 0, 1_950)), length_ms=50, heard_ms=2_000) == 1.0


def test_a_slice_of_so_many_transactions_is_held_to_when_its_end_was_heard():
    """One session that waits for the other is idle."""
    assert share(records((0, 0, 1_990), (1, 0, 100)), length_ms=None, sessions=2, heard_ms=2_000) == 1.0
    assert share(records((0, 0, 100)), length_ms=None, heard_ms=2_000) < LEAST_SHARE
    assert share(records((0, 0, 1)), length_ms=None, heard_ms=900) is None, "most of it is the way there and back"


def test_what_follows_a_failed_transaction_is_used():
    """The session rolls back, or connects again."""
    assert share(records(*chain(0, 5, gap_ms=5), code="40001")) == pytest.approx(1.0)
    assert share(records((0, 0, 10), code="08006")) == pytest.approx(1.0)


def test_a_slice_that_a_busy_machine_held_up_is_forgiven_by_the_others():
    accounted, asked = TimeCoverage(), SliceRequest(1, 1, 1, 1, None)
    asked.heard_ns = 60 * MS
    for held in (10, *[50] * 19):
        end = stream.Record(stream.END, elapsed_ns=60 * MS)
        accounted.add(records((0, 0, held)), end, asked, 50 * MS)
    assert accounted.share() == pytest.approx(0.96) and accounted.problem() is None


def test_too_little_is_not_judged():
    assert share(records((0, 0, 1)), length_ms=40, heard_ms=50) is None
    late = records((0, 20, 5), (1, 24, 1))  # threads that a busy machine woke up when a slice of 25 ms was nearly over
    assert share(late, length_ms=25, heard_ms=30, sessions=2) is None
    assert TimeCoverage().problem() is None


@pytest.mark.parametrize("how", ["half", "squeezed"])
def test_a_client_that_tells_half_of_its_times_is_named_and_ended(how: str):
    made = ClientArm(job(), [*PRETENDED, how], {}, "pretended")
    try:
        made.connect()
        made.turn(1, 60 * MS, None)
        made.check_time_coverage()
        made.turn(2, 500 * MS, None)
        with pytest.raises(
            ClientLostError, match=r"the client pretended reports operations for 5\d% of the time"
        ) as caught:
            made.check_time_coverage()
        assert made.process is None and caught.value.next_step == "run `dbdyno client check` with this client"
        made.connect()
        made.turn(1, 60 * MS, None)
        made.check_time_coverage()
    finally:
        made.end()


def test_blocks_that_are_too_short_to_judge_by_are_judged_together():
    """A client that told half of its times went through a run whose blocks had 0.3 s of them each."""
    made = ClientArm(job(), [*PRETENDED, "half"], {}, "pretended")

    def block(number: int, slices: int) -> None:
        made.begin_block()
        made.connect()
        for at in range(slices):
            made.turn(number + at, 60 * MS, None)
        made.check_time_coverage()

    try:
        block(1, 5)
        with pytest.raises(ClientLostError, match="of the time of its sessions"):
            block(10, 4)
        with pytest.raises(ClientLostError, match="of the time of its sessions"):
            block(20, 4)  # a new process, which is judged by less
    finally:
        made.end()


def test_short_slices_say_nothing_of_the_blocks_that_follow():
    for length_ms, lasts in ((25, False), (50, True)):
        accounted, asked = TimeCoverage(), SliceRequest(1, 1, 1, 1, None)
        asked.heard_ns = 60 * MS
        accounted.add(records((0, 0, 5)), stream.Record(stream.END, elapsed_ns=60 * MS), asked, length_ms * MS)
        assert accounted.can_continue is lasts


def test_the_page_says_how_much_is_expected():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "client-protocol.md").read_text()
    assert f"less than {LEAST_SHARE:.0%} of the time".replace("%", " %") in page
