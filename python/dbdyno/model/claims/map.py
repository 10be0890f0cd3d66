"""Maps of claims: a claim's quantity over the parameters that its source does not state.

A claim is measured at one point. If the source leaves a parameter open, somebody chose that point. A map shows the
results at other points: one curve per value of one parameter, over the values of another parameter. It also shows the
published value, and where each curve reaches it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.base.json_types import JsonObject
from dbdyno.model.claims.base import interval
from dbdyno.model.claims.bench import Arm, Bench, Evidence
from dbdyno.model.describe import SCHEMA


@dataclass(frozen=True)
class Map:
    """A quantity over a parameter (`levels`), with a curve per value of another one (`curves`).

    `arms` returns the arms that a point needs, and `value` the quantity of these arms, one number per replication.
    `published` lists the values in the source, each with its name; `band` is the claim's band.
    """

    quantity: str
    parameter: str
    levels: Sequence[float]
    curves: Sequence[str]
    machine: str
    arms: Callable[[str, float], list[Arm]]
    value: Callable[[Evidence, list[str]], list[float]]
    transactions: int
    warmup: int = 50
    band: tuple[float | None, float | None] = (None, None)
    published: Sequence[tuple[str, float]] = field(default=())


def draw_map(claim: str, title: str, source: str, claim_map: Map, bench: Bench) -> JsonObject:
    """Measure a map and return the page about it."""
    places = list(itertools.product(claim_map.curves, claim_map.levels))
    arms = {place: _named(place, claim_map.arms(*place)) for place in places}
    flat = [arm for own in arms.values() for arm in own]
    with bench.run(claim_map.machine, flat, transactions=claim_map.transactions, warmup=claim_map.warmup) as evidence:
        points = [_point(place, claim_map.value(evidence, [arm.name for arm in arms[place]])) for place in places]
    crossings = [
        {"curve": curve, "published": name, "x": x, "value": value}
        for name, value in claim_map.published
        for curve in claim_map.curves
        for x in _crossings([point for point in points if point["curve"] == curve], value)
    ]
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "claim_map",
        "claim": claim,
        "title": f"{claim}: {claim_map.quantity}, by {claim_map.parameter}",
        "facts": f"{bench.replications} replications of each point, seed {bench.seed}; {source}",
        "sentences": [f"{title}.", *_sentences(claim_map, points, crossings)],
        "quantity": claim_map.quantity,
        "parameter": claim_map.parameter,
        "band_low": claim_map.band[0],
        "band_high": claim_map.band[1],
        "published": [{"name": name, "value": value} for name, value in claim_map.published],
        "points": points,
        "crossings": crossings,
    }


def _named(place: tuple[str, float], arms: list[Arm]) -> list[Arm]:
    """Return the arms with names that are unique over all points."""
    curve, x = place
    return [replace(arm, name=f"{curve} / {x:g} / {at}") for at, arm in enumerate(arms)]


def _point(place: tuple[str, float], values: list[float]) -> JsonObject:
    mean, low, high = interval(values)
    return {"curve": place[0], "x": place[1], "value": mean, "low": low, "high": high, "values": values}


def _crossings(points: list[JsonObject], value: float) -> Iterator[float]:
    """Yield the values of the parameter at which a curve reaches `value`, interpolated on logarithmic scales."""
    known = [(point["x"], point["value"]) for point in points if point["value"] > 0]
    for (x, y), (next_x, next_y) in itertools.pairwise(known):
        if (y - value) * (next_y - value) <= 0 and y != next_y:
            part = math.log(value / y) / math.log(next_y / y)
            yield float(x * (next_x / x) ** part)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _sentences(claim_map: Map, points: list[JsonObject], crossings: list[JsonObject]) -> Iterator[str]:
    """Yield a sentence per curve on where it is within the band, and where it equals the published value."""
    low, high = (
        -math.inf if claim_map.band[0] is None else claim_map.band[0],
        math.inf if claim_map.band[1] is None else claim_map.band[1],
    )
    for curve in claim_map.curves:
        inside = [p["x"] for p in points if p["curve"] == curve and low <= p["low"] and p["high"] <= high]
        words = f"in the band at {', '.join(map(_number, inside))}" if inside else "nowhere in the band"
        found = [f"{c['published']} at {_number(c['x'])}" for c in crossings if c["curve"] == curve]
        yield f"{curve}: {words}" + (f"; {', '.join(found)}." if found else ".")
