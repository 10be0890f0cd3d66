"""Factors: what can differ between arms, and an arm for every combination of their levels.

A factor with one level applies to all arms and does not appear in their names; if it has several levels, each level
becomes a part of the arms' names. The combination of all first levels is the base. The functions have no side effects.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbdyno.base.errors import PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.plan import Arm, Plan, Script, Server, Value

ARMS_MOST = 64
_NAME_LONGEST = 60


_DICTS = ("settings", "parameters", "variables", "levels", "network", "device")
_OWN = (
    *("sessions", "rate_per_s", "protocol", "dsn", "server", "client", "fetch_size"),
    *("scripts", "before_sql", "after_sql", "description", "command", "cold", "warmup_transactions"),
)


@dataclass(frozen=True)
class Level:
    """One value of a factor: the part that it adds to an arm's name, and the fields of the arm that it sets."""

    name: str
    settings: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Value] = field(default_factory=dict)
    sessions: int | None = None
    variables: dict[str, str] = field(default_factory=dict)
    rate_per_s: float | None = None
    protocol: str | None = None
    dsn: str | None = None
    server: Server | None = None
    client: str | list[str] | None = None
    fetch_size: int | None = None
    scripts: list[Script] | None = None
    before_sql: list[str] = field(default_factory=list)
    after_sql: list[str] = field(default_factory=list)
    description: str = ""
    command: str | None = None
    cold: bool = False
    warmup_transactions: int | None = None
    levels: dict[str, str] = field(default_factory=dict)
    network: dict[str, str] = field(default_factory=dict)
    device: dict[str, str] = field(default_factory=dict)


def with_level(arm: Arm, level: Level) -> Arm:
    """Return the arm with the values of the level; fields that the level does not set are unchanged."""
    merged: JsonObject = {name: {**getattr(arm, name), **getattr(level, name)} for name in _DICTS}
    own = {name: value for name in _OWN if (value := getattr(level, name))}
    return replace(arm, **merged, **own)


def option_values(text: str, where: str) -> list[str]:
    """Return the values of `--set NAME=V1,V2`.

    Raises:
        PlanError: A value is empty or occurs twice.
    """
    values = [value.strip() for value in text.split(",")]
    if not all(values) or len(set(values)) < len(values):
        raise PlanError(
            f"{text!r} is not a list of different values",
            where=f"--set {where}",
            next_step="write values with a comma between them, such as 32,1024",
        )
    return values


def known_values(text: str, known: Iterable[str], where: str) -> list[str]:
    """Return the values of `--set NAME=V1,V2` after checking that all of them are in `known`.

    Raises:
        PlanError: A value is unknown or empty, or occurs twice.
    """
    values = option_values(text, where)
    for value in values:
        if value not in known:
            raise PlanError(
                f"{value!r} is not a level of this factor",
                where=f"--set {where}",
                next_step=f"use one or several of {', '.join(known)}",
            )
    return values


def numbers(text: str, where: str) -> list[int]:
    """Return the values of `--set NAME=V1,V2` as whole numbers above 0.

    Raises:
        PlanError: A value is not a whole number above 0, or occurs twice.
    """
    values = option_values(text, where)
    for value in values:
        if not value.isdecimal() or int(value) < 1:
            raise PlanError(
                f"{value!r} is not a whole number above 0",
                where=f"--set {where}",
                next_step="write numbers such as 1,8",
            )
    return [int(value) for value in values]


def choose_levels(levels: Mapping[str, Level], text: str, where: str) -> list[Level]:
    """Return the levels of a factor that `--set` names.

    Raises:
        PlanError: A level is unknown, or a value is empty or occurs twice.
    """
    return [levels[value] for value in known_values(text, levels, where)]


def setting(path: str, text: str) -> list[Level]:
    """Return a parameter of a machine as a factor, one level for each value."""
    short = path.rpartition(".")[2]
    return [Level(f"{short} {value}", {path: value}) for value in option_values(text, short)]


def sessions(text: str, noun: str = "session") -> list[Level]:
    """Return the number of sessions as a factor; `noun` is the study's word for a session."""
    return [Level(f"{n} {noun}" if n == 1 else f"{n} {noun}s", sessions=n) for n in numbers(text, f"{noun}s")]


def curve_levels(factor: str, levels: Sequence[Level]) -> list[Level]:
    """Return the levels with their positions for a factor over which the analysis draws a curve."""
    return [replace(level, name=f"{factor} {level.name}", levels={factor: level.name}) for level in levels]


def variable(factor: str, text: str, variable: str = "") -> list[Level]:
    """Return a variable of scripts or commands as a factor with a curve; its values are whole numbers above 0."""
    return curve_levels(factor, [Level(str(n), variables={variable or factor: str(n)}) for n in numbers(text, factor)])


def concurrency(factor: str, text: str) -> list[Level]:
    """Return the number of concurrent sessions as a factor with a curve."""
    return curve_levels(factor, [Level(str(n), sessions=n) for n in numbers(text, factor)])


def doubling_numbers(limit: int) -> str:
    """Return 1, 2, 4 and so on up to `limit`, as `--set` writes it.

    >>> doubling_numbers(6)
    '1,2,4,6'
    """
    levels = [1]
    while levels[-1] < limit:
        levels.append(min(2 * levels[-1], limit))
    return ",".join(map(str, levels))


def one_number(text: str, where: str) -> int:
    """Return the value of a factor that must have a single value: a whole number above 0.

    Raises:
        PlanError: The value is not a whole number above 0, or there are several values.
    """
    found = numbers(text, where)
    if len(found) > 1:
        raise PlanError(
            f"{text!r} has {len(found)} values, expected one", where=f"--set {where}", next_step="give one value"
        )
    return found[0]


def combine_levels(*factors: Sequence[Level], within: bool = False) -> list[Arm]:
    """Return an arm for each combination of levels; the last factor changes fastest.

    If `within` is True, an arm is compared with the arm that has the first level of the last factor and otherwise the
    same levels. If it is False, all arms are compared with the first arm.
    """
    varying = [len(levels) > 1 for levels in factors]
    arms: list[Arm] = []
    base = ""
    for combination in itertools.product(*factors):
        parts = [own.name for own, named in zip(combination, varying, strict=True) if named]
        name = ", ".join(parts) or "base"
        base = name if combination[-1] is factors[-1][0] else base
        arms.append(functools.reduce(with_level, combination, Arm(name, against=base if within else None)))
    first = arms[0].name
    return [replace(arm, against=None) if arm.against == first else arm for arm in arms]


def cross_factors(plan: Plan, factors: Mapping[str, str]) -> Plan:
    """Return the plan with machine parameters as additional factors: each arm is run at each combination of values.

    An arm is compared with its own base at the same values. If the plan has a single arm, all resulting arms are
    compared with the first.

    Raises:
        PlanError: There are too many arms.
    """
    if not factors:
        return plan
    return cross_levels(plan, [setting(path, text) for path, text in factors.items()])


def cross_levels(plan: Plan, factors: Sequence[Sequence[Level]]) -> Plan:
    """Return the plan with additional factors, as `cross_factors` does.

    Raises:
        PlanError: There are too many arms.
    """
    arms: list[Arm] = []
    base = plan.arms[0].name
    several = len(plan.arms) > 1
    for extra in combine_levels(*factors):
        suffix = "" if extra.name == "base" else extra.name
        for arm in plan.arms:
            against = _arm_name(arm.against or base, suffix, several) if several else None
            name = _arm_name(arm.name, suffix, several)
            settings, device = {**arm.settings, **extra.settings}, {**arm.device, **extra.device}
            arms.append(replace(arm, name=name, against=against, settings=settings, device=device))
    if len(arms) > ARMS_MOST:
        raise PlanError(
            f"{len(arms)} arms, one for each combination of values, are too many",
            where="--set",
            next_step=f"name fewer values: at most {ARMS_MOST} arms",
        )
    first = arms[0].name
    return replace(plan, arms=[_settle_comparison(arm, first) for arm in arms])


def _arm_name(arm: str, suffix: str, keep: bool) -> str:
    if not suffix:
        return arm
    name = f"{arm}, {suffix}" if keep else suffix
    return name if len(name) <= _NAME_LONGEST else name[: _NAME_LONGEST - 1] + "…"


def _settle_comparison(arm: Arm, first: str) -> Arm:
    """Return the arm with `against` removed if it names the first arm, which is the default."""
    return replace(arm, against=None) if arm.against == first else arm
