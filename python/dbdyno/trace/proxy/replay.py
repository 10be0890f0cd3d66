"""Replay of a proxy's capture: `run_replay` runs it, `sentences` describes the result.

with run_replay(Path("runs/now"), connection, ReplayOptions(speed=1.0), KeyPlan()) as it:
    ...
it.report["rows_differ"]

Keys are mapped as the `KeyPlan` says; an empty `KeyPlan` maps none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.capture_keys import KeyPlan
from dbdyno.evidence.capture_keys import sentences as key_sentences
from dbdyno.evidence.captures import LIMITS, open_capture

FASTEST = 0.0
"""Value of `speed` for a replay without any waiting."""
_SPEED_MOST = 1e6


@dataclass(frozen=True)
class ReplayOptions:
    """Options of a replay: its speed, whether commits keep their order, whether it may write, and the part to run.

    `from_ns` and `to_ns` are relative to the capture's first message. `session_sql` is executed at the start of each
    session; with `timed`, the time of each transaction is stored.
    """

    speed: float = 1.0
    order: bool = False
    writes: bool = False
    from_ns: int | None = None
    to_ns: int | None = None
    session_sql: tuple[str, ...] = ()
    timed: bool = False


@dataclass
class RunningReplay:
    """A running replay; `report` is its result when it is over, and `elapsed_ns` the times of timed transactions."""

    player: Any
    report: JsonObject = field(default_factory=dict)
    elapsed_ns: list[int] = field(default_factory=list)

    def read_progress(self) -> JsonObject:
        """Return the progress of the replay."""
        found: JsonObject = json.loads(self.player.progress())
        return found

    def is_over(self) -> bool:
        """Return True if all sessions have ended."""
        return bool(self.player.is_over())

    def stop(self) -> None:
        """Ask the replay to stop soon."""
        self.player.stop()


def speed_of(text: str) -> float:
    """Parse a speed: `2`, `2x`, `0.5`, `max`.

    Raises:
        TraceError: the text is not a speed.
    """
    if text == "max":
        return FASTEST
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed <= _SPEED_MOST:
        raise TraceError(
            f"{text!r} is not a speed: expected a factor or max", where="--speed", next_step="write 1, 0.5, 10 or max"
        )
    return speed


@contextlib.contextmanager
def run_replay(
    folder: Path,
    connection: Mapping[str, Any],
    options: ReplayOptions,
    keys: KeyPlan,
    messages: Path | None = None,
) -> Iterator[RunningReplay]:
    """Replay a capture until it is over, or until the `with` block ends.

    `messages` is the folder with the decrypted messages if those of the capture are encrypted.

    Raises:
        TraceError: the folder is not a capture, or the replay cannot run.
    """
    run = open_capture(folder)
    limits = " ".join(part for part in (connection.get("options"), LIMITS) if part)
    request = {
        "run": str(messages or run.path),
        "connection": {**connection, "options": limits},
        "speed": options.speed,
        "order": options.order,
        "writes": options.writes,
        "from_ns": options.from_ns,
        "to_ns": options.to_ns,
        "session_sql": list(options.session_sql),
        "timed": options.timed,
        "keys": keys.request(),
    }
    made = RunningReplay(_core.Replay(json.dumps(request)))
    try:
        yield made
    finally:
        if not made.is_over():
            made.stop()
        made.report = keys.result(json.loads(made.player.finish()))
        if options.timed:
            made.elapsed_ns = json.loads(made.player.timed())["elapsed_ns"]


def count_differences(report: Mapping[str, Any]) -> int:
    """Return the number of answers that differ from the capture, plus round trips left out and sessions cut off."""
    return sum(int(report[key]) for key in (*_DIFFERING, "left_out", "broken"))


_DIFFERING = {
    "rows_differ": "{:,} statements returned a different number of rows",
    "fails_now": "{:,} failed that had succeeded in the capture",
    "failed_then": "{:,} succeeded that had failed in the capture",
    "fails_otherwise": "{:,} failed with another SQLSTATE",
    "uneven": "{:,} round trips had more or fewer answers than in the capture",
}


def sentences(report: Mapping[str, Any], options: ReplayOptions) -> list[str]:
    """Return sentences about the result, the answer first."""
    then_s, now_s = report["then_ns"] / 1e9, report["elapsed_ns"] / 1e9
    found = [_headline(report)]
    pace = "without think time" if options.speed == FASTEST else f"at {options.speed:g} times its speed"
    found.append(
        f"{report['turns']:,} of {report['turns_all']:,} round trips of {report['sessions']:,} sessions {pace}:"
        f" {now_s:.2f} s, {then_s:.2f} s in the capture."
    )
    if report["outside"]:
        first = f"; {report['set_up']:,} of them set up sessions and were sent first" if report["set_up"] else ""
        found.append(
            f"{report['outside']:,} round trips of transactions that did not begin in this part were left out{first}."
        )
    if report["stopped"]:
        found.append(_cut(report, options))
    if report["fails_now"] and not options.writes:
        found.append("Sessions were read-only, so statements that write failed: --writes lets them write to a copy.")
    found.extend(key_sentences(report))
    if options.order:
        late = report["out_of_order"]
        but = f", but {late:,} waits timed out: the server did not answer what had to be first" if late else ""
        found.append(f"{report['commits']:,} commits kept their order{but}.")
    if options.speed != FASTEST and report["late_ns"] > 100_000_000:
        found.append(
            f"The replay fell up to {report['late_ns'] / 1e9:.2f} s behind the capture's clock: the server answered "
            "more slowly than in the capture."
        )
    return found


def _cut(report: Mapping[str, Any], options: ReplayOptions) -> str:
    """Return a sentence about the state that an incomplete replay leaves, and the next step."""
    if not options.writes:
        return "Sessions were read-only: the database is unchanged, and the replay can begin again."
    return (
        f"The database has what the {report['turns']:,} round trips wrote; transactions that were open are rolled back."
        " A replay does not go on where it stopped: restore the copy, then begin again (--to ends one at a time of your"
        " choice)."
    )


def _headline(report: Mapping[str, Any]) -> str:
    parts = [words.format(report[key]) for key, words in _DIFFERING.items() if report[key]]
    if report["left_out"]:
        parts.append(f"{report['left_out']:,} round trips were incomplete (or never answered) and were left out")
    if report["broken"]:
        parts.append(f"{report['broken']:,} sessions could not continue")
    if report["stopped"]:
        parts.append("it was stopped before its end")
    uncounted = report.get("uncounted", 0)
    if not parts and uncounted:
        return (
            f"Same answers as far as the log has them: {report['same']:,} statements ended as in the capture; the "
            "numbers of rows"
            f" of {uncounted:,} are not in the log and were not compared."
        )
    if not parts:
        return f"Same answers: {report['same']:,} statements ended as in the capture, with the same numbers of rows."
    return f"The answers differ from the capture's: {'; '.join(parts)}. {report['same']:,} statements ended as then."
