"""Reader of the `[[factor]]` tables of a plan: each factor with its list of levels, and the resulting arms.

[[factor]]
sessions = [1, 2, 4, 8, 16]

[[factor]]
work_mem = ["4MB", "64MB"]                  # any setting of the server, or parameter of a machine

[[factor]]
variables.rows = [1, 10, 100]               # :rows in the scripts

[[factor]]
delay = ["0ms", "1ms", "5ms"]               # of the network; network.rate = ["10Mbit", "1Gbit"]

[[factor]]
device = ["gp3", "io2"]                    # below its server; device.wal = ["gp3", "io2"], device.iops = [...]

[[factor]]
name = "form"                               # anything that an arm may have
levels = [{name = "join", scripts = ["join.sql"]}, {name = "exists", scripts = ["exists.sql"]}]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbdyno.base.dsn import names_a_secret
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine.volumes import DEVICE
from dbdyno.study.plan import devices, keys, network
from dbdyno.study.plan.factors import Level, combine_levels, with_level
from dbdyno.study.plan.plan import Arm

if TYPE_CHECKING:
    from dbdyno.study.plan.reader import PlanReader

ONE_AT_A_TIME = "one-at-a-time"
ARM = "arm"
"""Name of the factor whose levels are the plan's own arms, if the plan has other factors too."""
_TABLES = ("settings", "variables", "parameters", "network", "device")
_OWN = ("sessions", "rate_per_s", "protocol", "statement_mode", "client", "fetch_size")
_NAME_LONGEST = 60


def arms_of(reader: PlanReader, tables: Any, design: str, given: Sequence[Arm]) -> tuple[list[str], list[Arm]]:
    """Return the factors' names and the resulting arms; the arms in `given` are levels of an additional factor.

    Errors are reported through the reader.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        reader.fail("a factor is a table: write [[factor]] once for each", "", "factor", 0)
    read = [_Factor(reader, table, at) for at, table in enumerate(tables)]
    names = [factor.name for factor in read]
    for at, name in enumerate(names):
        if name in names[:at] or name == ARM:
            reader.fail(f"two factors are named {name!r}", "factor", "", at, 'give one of them another name = "..."')
    factors = [factor.levels for factor in read]
    if given:
        names, factors = [ARM, *names], [[_level(reader, arm, at) for at, arm in enumerate(given)], *factors]
    arms = _one_at_a_time(factors) if design == ONE_AT_A_TIME else _every_combination(reader, factors)
    if len(arms) > reader.arms_most:
        _too_many(reader, len(arms), factors)
    for arm in arms:
        if len(arm.name) > _NAME_LONGEST:
            reader.fail(
                f"the arm {arm.name!r} has a name of more than {_NAME_LONGEST} characters",
                "factor",
                "",
                0,
                'name the levels: levels = [{name = "small", ...}, ...]',
            )
    return names, arms


def _every_combination(reader: PlanReader, factors: list[list[Level]]) -> list[Arm]:
    count = 1
    for levels in factors:
        count *= len(levels)
    if count > reader.arms_most:
        _too_many(reader, count, factors)
    return combine_levels(*factors)


def _one_at_a_time(factors: list[list[Level]]) -> list[Arm]:
    """Return the arm with all first levels, then arms that differ from it in the level of a single factor."""
    base = combine_levels(*([levels[0]] for levels in factors))[0]
    alone = [with_level(replace(base, name=level.name), level) for levels in factors for level in levels[1:]]
    return [base, *alone]


def _too_many(reader: PlanReader, count: int, factors: list[list[Level]]) -> None:
    alone, most = 1 + sum(len(levels) - 1 for levels in factors), reader.arms_most
    ways = [f'design = "{ONE_AT_A_TIME}" makes {alone} arms from them'] if alone < count else []
    ways += [f"`dbdyno tune` races up to {keys.ARMS_MOST}"] if count <= keys.ARMS_MOST and most < keys.ARMS_MOST else []
    step = "; ".join(ways) or f"name fewer levels: at most {most} arms"
    reader.fail(f"the factors make {count} arms; a plan with factors has at most {most}", "factor", "", 0, step)


def _level(reader: PlanReader, arm: Arm, at: int) -> Level:
    """Return one of the plan's own arms as a level of a factor."""
    if arm.against is not None:
        reader.fail("with factors, every arm is compared with the first: omit against", "arm", "against", at)
    own = {name: getattr(arm, name) for name in Level.__dataclass_fields__}
    return Level(**{**own, "levels": {ARM: arm.name}})


class _Factor:
    """A `[[factor]]` table: its name and its levels."""

    def __init__(self, reader: PlanReader, table: Mapping[str, Any], at: int) -> None:
        self.reader, self.at = reader, at
        own = {key: value for key, value in table.items() if key != "name"}
        if len(own) != 1:
            self.fail(
                f"a factor has one key beside its name, found {', '.join(own) or 'none'}",
                "",
                "write the name of what differs and a list of its levels, such as sessions = [1, 2, 4]",
            )
        ((key, given),) = own.items()
        table_of, dot, name_in = key.partition(".")
        if dot and table_of in _TABLES:  # quoted "variables.rows" means the same as unquoted
            key, given = table_of, {name_in: given}
        self.kind = key
        if key in _TABLES and not (key == DEVICE and isinstance(given, list)):
            if not isinstance(given, dict) or len(given) != 1:
                self.fail(f"write {key}.NAME = [...], one factor for each", key)
            ((key, given),) = given.items()
        elif key == network.DELAY:
            self.kind = "network"
        elif key not in (*_OWN, "levels", DEVICE):
            self.kind = "settings"
        self.key = key
        if key != "levels" and names_a_secret(key):
            self.fail(
                f"the levels of {key} would appear in every report as names of arms",
                key,
                f'give each level a name: levels = [{{name = "one", {self.kind} = {{{key} = "..."}}}}]',
            )
        name = table.get("name", "" if key == "levels" else key)
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _NAME_LONGEST:
            self.fail("a factor's name is 1 to 60 printable characters", "name")
        self.name = name
        if not isinstance(given, list) or not given:
            self.fail(f"{key} must be a list of levels, found {given!r}"[:120], key)
        self.levels = [self.named(value) if self.kind == "levels" else self.plain(value) for value in given]
        names = [level.name for level in self.levels]
        if len(set(names)) < len(names):
            twice = next(own for own in names if names.count(own) > 1)
            self.fail(f"the level {twice!r} appears twice", key)

    def fail(self, message: str, key: str, step: str | None = None) -> Any:
        self.reader.fail(message, "factor", key, self.at, step)

    def named(self, value: Any) -> Level:
        """Return the level that a table describes: a name and any keys that an arm can have."""
        if not isinstance(value, dict):
            self.fail(
                f'a level is a table such as {{name = "small", work_mem = "4MB"}}, found {value!r}'[:160], "levels"
            )
        allowed = tuple(key for key in keys.ARM if key.name != "against")
        own = self.reader.arm_values(self.reader.check(value, allowed, "factor", self.at), "factor", self.at)
        return Level(**own, levels={self.name: own["name"]})

    def plain(self, value: Any) -> Level:
        """Return the level for a single value, such as a number or a word."""
        if not isinstance(value, str | int | float | bool):
            self.fail(f"a level of {self.key} is a word or a number, found {value!r}"[:120], self.key)
        if self.kind in _OWN:
            key = next(key for key in keys.ARM if key.name == self.kind)
            value = self.reader.value(key, value, "factor", self.at)
        elif self.kind == "network":
            network.read(self.reader, {self.key: value}, "factor", self.at)
        word = ("on" if value else "off") if isinstance(value, bool) else str(value)
        levels = {self.name: word}
        if self.kind == DEVICE:
            read = devices.read(self.reader, {self.key: value} if self.key != self.kind else word, "factor", self.at)
            return replace(devices.level(self.key, word), device=read, levels=levels)
        if self.kind == "sessions":
            return Level("1 session" if value == 1 else f"{word} sessions", sessions=int(value), levels=levels)
        if self.kind == "rate_per_s":
            return Level(f"{word}/s", rate_per_s=float(value), levels=levels)
        if self.kind in ("client", "fetch_size", "protocol", "statement_mode"):
            return self.of_client(word, value)
        given = value if self.kind == "parameters" else word
        own: JsonObject = {self.kind: {self.key: given}}
        return Level(f"{self.name} {word}", **own, levels=levels)

    def of_client(self, word: str, value: Any) -> Level:
        """Return a level of a factor on the client: its program, its fetch size or its protocol."""
        levels = {self.name: word}
        if self.kind == "client":
            return Level(word, client=None if word == keys.OWN_CLIENT else word, levels=levels)
        if self.kind == "fetch_size":
            return Level("1 row" if value == 1 else f"{word} rows", fetch_size=int(value), levels=levels)
        return Level(word, protocol=keys.STATEMENT_MODES.get(word, word), levels=levels)
