"""Turns of a replay: the capture on one side after the other, first at its own speed, then faster.

Each side has three turns at the capture's own speed and two at every other speed, in random order. A side that kept
pace in no turn at a speed has fallen behind; of the higher speeds, it then gets only the one without think times.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno import _core
from dbdyno.base.errors import TargetError, TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.keys.plan import key_plan
from dbdyno.bench.postgres.replay_watch import watch_server
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import StopRequested
from dbdyno.evidence.capture_keys import KeyPlan
from dbdyno.evidence.captures import open_capture
from dbdyno.rehearse.replay.copies import refuse_without_copies, replay_database, session_options
from dbdyno.rehearse.request import ReplayRequest
from dbdyno.rehearse.side import Side
from dbdyno.trace.proxy.replay import FASTEST, ReplayOptions, run_replay

if TYPE_CHECKING:
    from pathlib import Path

    from dbdyno.evidence.run import Run

TURNS_FIRST, TURNS = 3, 2
_KEPT, _GRACE_NS = 1.05, 100_000_000
"""A turn kept pace if it took at most this multiple of the target time, plus this much [ns]."""
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Turn:
    """One replay of the capture.

    Attributes:
        side: `old` or `new`.
        speed: Speed; 0 without think times.
        report: Report of the core's replay.
        server: What the server did meanwhile: WAL, temporary files, checkpoints, waits.
        elapsed_ns: Time of each transaction [ns].
    """

    side: str
    speed: float
    report: JsonObject
    server: JsonObject
    elapsed_ns: tuple[int, ...]

    @property
    def kept_pace(self) -> bool:
        """Return True if all round trips were sent within the time that the speed allows."""
        if self.speed == FASTEST:
            return True
        asked_ns = self.report["then_ns"] / self.speed
        return bool(self.report["elapsed_ns"] <= asked_ns * _KEPT + _GRACE_NS) and not self.report["stopped"]


@dataclass(frozen=True, slots=True)
class Replays:
    """All turns of both sides, facts about the capture, and why the replay ended early (empty if it did not)."""

    turns: tuple[Turn, ...]
    capture: JsonObject
    ended: str = ""


@dataclass
class Player:
    """Settings and capture shared by all turns of a replay.

    Attributes:
        run: The captured run.
        request: What is replayed.
        capture: Facts about the capture, as the core reports them.
        show: Function that is called with a line about the progress.
        stop: Returns True if the user asked to stop.
    """

    run: Run
    request: ReplayRequest
    capture: JsonObject
    show: Callable[[str], None]
    stop: Callable[[], bool]

    @property
    def messages(self) -> Path:
        """Return the folder with the messages."""
        return self.request.messages or self.run.path

    @property
    def writes(self) -> bool:
        """Return True if the capture writes, so that each turn needs a copy of the database."""
        return bool(self.capture["writes"] or self.capture["lifts"])

    def play(self, side: Side, speed: float, guardian: Guardian) -> Turn:
        """Replay the capture once on one side.

        Raises:
            TargetError: The server refuses the copy, or does not answer.
            StopRequested: The user asked to stop.
        """
        options = session_options(side.server)
        wanted = ReplayOptions(
            speed, writes=self.writes, to_ns=self.request.until_ns, session_sql=side.settings, timed=True
        )
        with replay_database(side, guardian, writes=self.writes) as database:
            keys = key_plan(database, self.messages, None, self.request.until_ns) if self.writes else KeyPlan()
            connection = _with_options(database, options)
            with (
                watch_server(database) as watch,
                run_replay(self.run.path, connection, wanted, keys, self.messages) as it,
            ):
                while not it.is_over():
                    if self.stop():
                        raise StopRequested
                    time.sleep(_LOOK_S)
                    watch.sample()
        return Turn(side.name, speed, it.report, watch.report, tuple(it.elapsed_ns))


def open_player(
    request: ReplayRequest, sides: tuple[Side, Side], show: Callable[[str], None], stop: Callable[[], bool]
) -> Player:
    """Read a capture and check that it can be replayed on both sides, before anything is measured.

    Raises:
        TraceError: The run cannot be replayed.
        TargetError: A side cannot have the copies that a replay writes to.
    """
    run = open_capture(request.capture)
    player = Player(run, request, json.loads(_core.captured(request.messages or run.path)), show, stop)
    if player.writes:
        refuse_without_copies(sides)
    return player


def replay_both(player: Player, sides: tuple[Side, Side], dice: random.Random) -> Replays:
    """Replay the capture on both sides at all speeds; results are kept if it ends early."""
    turns: list[Turn] = []
    gone: set[str] = set()
    with Guardian() as guardian:
        for speed in (1.0, *player.request.speeds):
            count = TURNS_FIRST if speed == 1.0 else TURNS
            for number in range(count):
                order = [side for side in sides if side.name not in gone or speed == FASTEST]
                dice.shuffle(order)
                for side in order:
                    player.show(f"replay at {speed_text(speed)}, turn {number + 1} of {count}, {side.name} side")
                    try:
                        turns.append(player.play(side, speed, guardian))
                    except StopRequested:
                        return Replays(tuple(turns), player.capture, "it was stopped")
                    except (TargetError, TraceError) as error:
                        return Replays(tuple(turns), player.capture, error.message)
            gone |= {side.name for side in sides if not any(kept_pace_at(turns, side.name, speed))}
    return Replays(tuple(turns), player.capture)


def kept_pace_at(turns: list[Turn] | tuple[Turn, ...], side: str, speed: float) -> list[bool]:
    """Return, for each turn of one side at one speed, whether it kept pace."""
    return [turn.kept_pace for turn in turns if turn.side == side and turn.speed == speed]


def speed_text(speed: float) -> str:
    """Describe a speed in words."""
    if speed == FASTEST:
        return "full speed"
    return "its own speed" if speed == 1.0 else f"{speed:g} times its speed"


def _with_options(database: Postgres, options: str) -> JsonObject:
    connection = dict(database.conninfo())
    connection["options"] = " ".join(part for part in (connection.get("options"), options) if part)
    return connection
