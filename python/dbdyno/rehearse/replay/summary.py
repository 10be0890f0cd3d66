"""Summary of a replay: whether each side kept pace, the speed at which one falls behind, transactions and answers."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.move.nouns import with_noun
from dbdyno.rehearse.replay.turns import Replays, Turn, kept_pace_at, speed_text
from dbdyno.stats.distributions import t_quantile
from dbdyno.trace.proxy.replay import FASTEST

_SIDES = ("old", "new")
_ANSWERS = ("rows_differ", "fails_now", "failed_then", "fails_otherwise")
_STATEMENTS_MOST = 40
_LEAST_PAIRS = 3
_SERVER = ("wal_bytes", "temp_bytes", "checkpoints_timed", "checkpoints_requested")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a replay: its model for the page, sentences for the verdict, and whether only the new side fails.

    `is_worse` is True if only the old side keeps pace at the capture's own speed.
    """

    model: JsonObject
    sentences: tuple[str, ...]
    is_worse: bool


def outcome_of(replays: Replays, name: str) -> Outcome:
    """Return the outcome of all turns; `name` names the new side, such as `PostgreSQL 18`."""
    turns = replays.turns
    speeds = list(dict.fromkeys(turn.speed for turn in turns))
    rows = [row for speed in speeds for side in _SIDES if (row := _row(turns, side, speed))]
    falls_behind_at = {side: _falls_behind_at(turns, side, speeds) for side in _SIDES}
    is_worse = falls_behind_at["new"] == 1.0 and falls_behind_at["old"] != 1.0
    sentences = list(_sentences(turns, falls_behind_at, name))
    if replays.ended:
        sentences.append(f"The replay did not finish: {replays.ended}.")
    model: JsonObject = {
        "sessions": replays.capture["at_once"],
        "transactions": replays.capture["transactions"],
        "then_ns": turns[0].report["then_ns"] if turns else None,
        "falls_behind_at": falls_behind_at,
        "is_worse": is_worse,
        "ratio": _ratio(turns),
        "speeds": rows,
        "statements": _statements(turns),
        "sentences": sentences,
        "notes": _notes(turns),
    }
    return Outcome(model, tuple(sentences), is_worse)


def _row(turns: Sequence[Turn], side: str, speed: float) -> TableRow | None:
    """Return the figures of one side at one speed: sums and means over the turns."""
    own = [turn for turn in turns if turn.side == side and turn.speed == speed]
    if not own:
        return None
    seconds = sum(turn.report["elapsed_ns"] for turn in own) / 1e9
    asked = None if speed == FASTEST else speed * own[0].report["turns_all"] / (own[0].report["then_ns"] / 1e9)
    times = sorted(time for turn in own for time in turn.elapsed_ns)
    waits: Counter[str] = Counter()
    for turn in own:
        waits.update(turn.server["waits"])
    samples = sum(turn.server["samples"] for turn in own)
    measured = {
        key: sum(turn.server[key] for turn in own) / len(own)
        for key in _SERVER
        if all(key in turn.server for turn in own)
    }
    return {
        "side": side,
        "speed": speed,
        "turns": len(own),
        "kept": sum(turn.kept_pace for turn in own),
        "asked_per_s": asked,
        "done_per_s": sum(turn.report["turns"] for turn in own) / seconds if seconds else None,
        "late_ns": max(turn.report["late_ns"] for turn in own),
        "mean_ns": statistics.fmean(times) if times else None,
        "p99_ns": times[min(len(times) - 1, math.ceil(0.99 * len(times)) - 1)] if times else None,
        "differing": sum(turn.report[key] for turn in own for key in _ANSWERS),
        "fails_now": sum(turn.report["fails_now"] for turn in own),
        "broken": sum(turn.report["broken"] for turn in own),
        "active": sum(waits.values()) / samples if samples else None,
        "waits": {name: count / sum(waits.values()) for name, count in waits.most_common()},
        **measured,
    }


def _falls_behind_at(turns: Sequence[Turn], side: str, speeds: Sequence[float]) -> float | None:
    """Return the lowest speed at which a side kept pace in no turn; None if there is none."""
    tried = (speed for speed in sorted(speeds) if speed != FASTEST)
    return next((speed for speed in tried if (kept := kept_pace_at(list(turns), side, speed)) and not any(kept)), None)


def _ratio(turns: Sequence[Turn]) -> JsonObject | None:
    """Return the ratio of mean transaction times, new to old, at the capture's own speed, with its interval."""
    means = {
        side: [
            statistics.fmean(one.elapsed_ns)
            for one in turns
            if one.side == side and one.speed == 1.0 and one.elapsed_ns
        ]
        for side in _SIDES
    }
    logs = [math.log(new / old) for old, new in zip(means["old"], means["new"], strict=False)]
    if len(logs) < _LEAST_PAIRS:
        return None
    mean, error = statistics.fmean(logs), max(statistics.stdev(logs), 0.005) / math.sqrt(len(logs))
    half = t_quantile(len(logs) - 1, 0.975) * error
    return {"ratio": math.exp(mean), "low": math.exp(mean - half), "high": math.exp(mean + half), "turns": len(logs)}


def _sentences(turns: Sequence[Turn], falls_behind_at: dict[str, float | None], name: str) -> list[str]:
    """Return sentences about pace, transaction times and answers, in this order."""
    names = {"old": "the old side", "new": name if name.startswith("PostgreSQL") else "the new side"}
    found = []
    lost = {side: speed for side, speed in falls_behind_at.items() if speed is not None}
    tried = max((turn.speed for turn in turns), default=0.0)
    if not lost and tried:
        found.append(f"When all sessions are replayed at once, both sides keep the load's pace at {speed_text(tried)}.")
    for side in _SIDES:
        if side not in lost:
            continue
        row = _row(turns, side, lost[side])
        reached = f" ({_share(row)})" if row else ""
        other = _SIDES[1 - _SIDES.index(side)]
        but = f"; {names[other]} keeps it" if other not in lost or (lost[other] or 0) > lost[side] else ""
        found.append(_upper(f"{names[side]} falls behind at {speed_text(lost[side])}{reached}{but}."))
    if ratio := _ratio(turns):
        low, high = (100 * (ratio[key] - 1) for key in ("low", "high"))
        certain = not low <= 0 <= high
        words = f"{low:+.0f} to {high:+.0f} %".replace("-", "\N{MINUS SIGN}")
        what = "longer" if ratio["ratio"] > 1 else "shorter"
        moved = f"is {100 * abs(ratio['ratio'] - 1):.0f} % {what} on {names['new']} ({words})"
        said = moved if certain else f"shows no certain difference ({words} on {names['new']})"
        found.append(f"With all sessions at once, the mean time of a transaction {said}.")
    for side in _SIDES:
        own = [turn for turn in turns if turn.side == side]
        if failed := sum(turn.report["fails_now"] for turn in own):
            words = f"{with_noun(failed, 'execution')} failed that did not fail in the capture"
            found.append(f"On {names[side]}, {words}, in {with_noun(len(own), 'turn')}.")
    return found


def _share(row: TableRow) -> str:
    asked, done = row["asked_per_s"], row["done_per_s"]
    return f"{done:,.0f} of {asked:,.0f} round trips a second, {row['late_ns'] / 1e9:.1f} s behind"


def _statements(turns: Sequence[Turn]) -> list[TableRow]:
    """Return the statements whose answers differed from those in the capture, with counts by side."""
    found: dict[str, JsonObject] = {}
    for turn in turns:
        for one in turn.report["differing"]:
            row = found.setdefault(one["statement"], {"text": one["statement"]})
            for key in _ANSWERS:
                name = f"{turn.side}_{'fails' if 'fail' in key else 'rows'}"
                row[name] = row.get(name, 0) + one[key]
    most = sorted(found.values(), key=lambda row: -sum(value for value in row.values() if isinstance(value, int)))
    return most[:_STATEMENTS_MOST]


def _notes(turns: Sequence[Turn]) -> list[str]:
    """Return notes about what a server did not provide, without texts of the core, which may contain values."""
    said = {
        f"Not known for the {turn.side} side: {key} ({why})."
        for turn in turns
        for key, why in turn.server["missing"].items()
    }
    return sorted(said)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
