"""Influence of a machine's parameters on the result: elementary effects (Morris 1991), scaled by uncertainty.

Each parameter has a range: its interval if the machine has one, otherwise its value plus and minus 25 %, which is
marked as assumed. Trajectories start at random points of a grid with four levels and change one parameter after the
other. The mean absolute effect (mu*) says how much a parameter matters; the standard deviation of its effects (sigma)
says how much that depends on the other parameters. Sobol indices (`sobol.py`) are added on request.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.model.postgres import SEED, simulate
from dbdyno.study.prediction.compare import CalibratedMachine
from dbdyno.study.prediction.sobol import design, indices

if TYPE_CHECKING:
    from dbdyno.hosts.workers import Workers

SCHEMA = 1
LEVELS = 4
ASSUMED = 0.25
TRANSACTIONS = 5_000
SHOWN = 10
_LEFT_OUT = (
    *("calibrated_sessions", "cores", "client_threads", "page_bytes", "commit_siblings", "sync_requests"),
    *("wal_writer_wake_kb", "wal_writer_flush_kb", "wal_buffers_kb"),
    *("data_mb", "shared_buffers_mb", "calibrated_buffers_mb", "work_mem_mb"),
)
"""Numbers that are not varied because they are properties of the host, the server or the run, not estimates."""
ANSWERS = ("throughput", "p99")


@dataclass(frozen=True)
class Range:
    """Range of a parameter; `assumed` is True if the machine has no interval for it."""

    path: str
    value: float
    low: float
    high: float
    assumed: bool


def ranges(machine: CalibratedMachine) -> list[Range]:
    """Return the ranges of the machine's parameters that are numbers other than 0."""
    found = []
    for row in machine.machine.parameters:
        path, value = row["path"], row["value"]
        key = path.removeprefix("postgres.")
        if key == path or key in _LEFT_OUT or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not value or key.startswith("scheduler."):
            continue
        ends = row.get("interval")
        # An interval of no width is none.
        known = ends is not None and ends[1] > ends[0]
        low, high = (ends[0], ends[1]) if known and ends else (value * (1 - ASSUMED), value * (1 + ASSUMED))
        least, most = row["range"] or (-math.inf, math.inf)
        found.append(Range(path, float(value), max(low, least), min(high, most), not known))
    return found


@dataclass(frozen=True)
class Walk:
    """A trajectory: points in the unit cube, and for each step the changed parameter and its change."""

    places: list[list[float]]
    steps: list[tuple[int, float]]


def walks(count: int, trajectories: int, seed: int) -> list[Walk]:
    """Return trajectories over `count` parameters, each with `count` + 1 points."""
    dice = random.Random(seed)
    step = LEVELS / (2 * (LEVELS - 1))
    found = []
    for _ in range(trajectories):
        place = [dice.randrange(LEVELS // 2) / (LEVELS - 1) for _ in range(count)]
        up = [dice.random() < 0.5 for _ in range(count)]
        place = [at if rises else at + step for at, rises in zip(place, up, strict=True)]
        walk = Walk([list(place)], [])
        for parameter in dice.sample(range(count), count):
            change = step if up[parameter] else -step
            place[parameter] += change
            walk.places.append(list(place))
            walk.steps.append((parameter, change))
        found.append(walk)
    return found


def effects(walked: Sequence[Walk], answers: Sequence[Sequence[Sequence[float]]]) -> list[list[tuple[float, float]]]:
    """Return mu* and sigma of each parameter for each answer.

    Args:
        walked: The trajectories.
        answers: The answers at each place of each trajectory.
    """
    found: list[list[list[float]]] = [[] for _ in walked[0].steps]
    for walk, own in zip(walked, answers, strict=True):
        for (parameter, change), before, after in zip(walk.steps, own, own[1:], strict=False):
            found[parameter].append([(b - a) / change for a, b in zip(before, after, strict=True)])
    return [[_moments([own[at] for own in of]) for at in range(len(of[0]))] for of in found]


def _moments(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1))
    return sum(abs(value) for value in values) / len(values), spread


def answers_of(
    toml: str, sessions: int, places: Sequence[Mapping[str, str]], count: Callable[[], None] = lambda: None
) -> list[tuple[float, float]]:
    """Return the logarithms of a machine's throughput and p99 at each of `places`; every host computes the same."""
    found = []
    for settings in places:
        # The same dice everywhere, so that only the parameters differ.
        outcome = simulate(
            toml, sessions=sessions, settings=dict(settings), seed=SEED, replications=1, transactions=TRANSACTIONS
        )
        found.append((math.log(outcome.throughput_per_s), math.log(outcome.quantile_ns(0.99))))
        count()
    return found


def sensitivity(
    machine: CalibratedMachine,
    *,
    sessions: int,
    trajectories: int,
    seed: int,
    samples: int = 0,
    on_progress: Callable[[str], None] = lambda words: None,
    workers: Workers | None = None,
) -> JsonObject:
    """Return the page about the parameters that change throughput and p99 most.

    Args:
        machine: The calibrated machine.
        sessions: Number of sessions.
        trajectories: Number of paths through the parameters.
        seed: Seed of the paths and samples.
        samples: Number of samples for Sobol indices; 0 to compute none.
        on_progress: Called with the progress as text.
        workers: Workers that each compute one path at a time; None to use only this machine.
    """
    varied = ranges(machine)
    walked = walks(len(varied), trajectories, seed)
    done, toml = 0, machine.machine.toml
    sampled = design(len(varied), samples, seed).places if samples else []
    # A task of a worker has as many places as a path.
    of = [walk.places for walk in walked] + _parts(sampled, len(varied) + 1)
    places = [[_settings(varied, place) for place in own] for own in of]

    def count_answers(more: int = 1) -> None:
        nonlocal done
        done += more
        on_progress(f"{done} of {sum(map(len, places))}")

    if workers is None:
        answers = [answers_of(toml, sessions, own, count_answers) for own in places]
    else:
        tasks = [workers.submit(answers_of, toml, sessions, own) for own in places]
        answers = []
        for task, own in zip(tasks, places, strict=True):
            answers.append(task.result())
            count_answers(len(own))
    found = effects(walked, answers[:trajectories])
    shares = _shares(samples, [one for own in answers[trajectories:] for one in own])
    rows: list[JsonObject] = [
        {
            "path": own.path,
            "value": own.value,
            "low": own.low,
            "high": own.high,
            "assumed": own.assumed,
            **{
                f"{name}_{what}": of[at][n] for at, name in enumerate(ANSWERS) for n, what in enumerate(("mu", "sigma"))
            },
            **(shares[at_row] if shares else {}),
        }
        for at_row, (own, of) in enumerate(zip(varied, found, strict=True))
    ]
    rows.sort(key=lambda row: -max(row["throughput_mu"], row["p99_mu"]))
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "sensitivity",
        "title": f"What moves the answer: {machine.machine.title}",
        "sessions": sessions,
        "samples": samples,
        "rows": rows[:SHOWN],
        "left_out": max(len(rows) - SHOWN, 0),
        "sentences": _sentences(rows, sessions),
    }


def _parts(places: Sequence[list[float]], size: int) -> list[list[list[float]]]:
    return [list(places[begin : begin + size]) for begin in range(0, len(places), size)]


def _shares(samples: int, answers: Sequence[Sequence[float]]) -> list[dict[str, float]]:
    """Return the Sobol indices of each parameter for each answer."""
    found: list[dict[str, float]] = []
    for at, name in enumerate(ANSWERS):
        own = indices(samples, [one[at] for one in answers]) if samples else []
        found = found or [{} for _ in own]
        for row, (first, total) in zip(found, own, strict=True):
            row |= {f"{name}_first": first, f"{name}_total": total}
    return found


def _settings(varied: Sequence[Range], place: Sequence[float]) -> dict[str, str]:
    return {own.path: repr(own.low + (own.high - own.low) * x) for own, x in zip(varied, place, strict=True)}


def _sentences(rows: Sequence[JsonObject], sessions: int) -> list[str]:
    said = []
    for name in ANSWERS:
        first = max(rows, key=lambda row: row[f"{name}_mu"])
        said.append(
            f"{name} of {sessions} session(s) depends most on {first['path']}:"
            f" {math.expm1(first[f'{name}_mu']):.1%} over its range."
        )
    if assumed := [row["path"] for row in rows[:SHOWN] if row["assumed"]]:
        said.append(f"Ranges assumed, a quarter up and down, since the machine gives none: {', '.join(assumed)}.")
    return said
