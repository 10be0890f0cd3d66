"""Reader of plans in TOML; every error names the file, the line, and the allowed values."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from dbdyno.base.dsn import without_secrets
from dbdyno.base.errors import PlanError
from dbdyno.base.files import read_user_file, toml_tables, user_file_text
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.kinds import EMBEDDED
from dbdyno.study.plan import devices, hosts, keys, network, replay
from dbdyno.study.plan.conditions import resolve_codes, suggestion
from dbdyno.study.plan.durations import duration_ns
from dbdyno.study.plan.factor_tables import arms_of
from dbdyno.study.plan.factors import ARMS_MOST as FACTOR_ARMS_MOST
from dbdyno.study.plan.key import Key
from dbdyno.study.plan.plan import (
    Arm,
    Judge,
    Plan,
    Schedule,
    Script,
    Server,
    Watch,
    Workload,
)
from dbdyno.study.plan.schedule import SLICED_TURN_NS
from dbdyno.study.plan.targets import COMMANDS, HOST, target_of_plan_file
from dbdyno.study.plan.workloads import builtin_workload


def read_plan(path: Path, *, arms_most: int = FACTOR_ARMS_MOST, words: Mapping[str, str] | None = None) -> Plan:
    """Read and check a plan file, whose factors can make at most `arms_most` arms.

    In all texts of the plan, each key of `words` is replaced by its value.

    Raises:
        PlanError: The file cannot be read, is not UTF-8 or TOML, or is not a valid plan.
    """
    text = user_file_text(
        path, PlanError, next_step="write an example with `dbdyno plan new`, or list the studies with `dbdyno studies`"
    )
    return parse_plan(text, path, arms_most=arms_most, words=words)


def parse_plan(
    text: str, path: Path, *, arms_most: int = FACTOR_ARMS_MOST, words: Mapping[str, str] | None = None
) -> Plan:
    """Return the plan in `text`; file names in it are relative to the folder of `path`.

    Raises:
        PlanError: The text is not TOML or not a valid plan.
    """
    try:
        tables = toml_tables(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        where = f"{path}:{place[1]}" if place else str(path)
        raise PlanError(
            f"is not valid TOML: {error}", where=where, next_step="correct the file at this line"
        ) from error
    return _Reader(text, path, arms_most).plan(_replace_words(tables, words) if words else tables)


def _replace_words(value: Any, words: Mapping[str, str]) -> Any:
    """Return the values of a plan with words replaced in its texts."""
    if isinstance(value, dict):
        return {key: _replace_words(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_words(item, words) for item in value]
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
    return value


class _Reader:
    """Reader of one plan; it keeps the plan's text so that errors can name the line of a key."""

    def __init__(self, text: str, path: Path, arms_most: int) -> None:
        self.arms_most = arms_most
        self.lines = text.splitlines()
        self.text = text
        self.path = path

    def plan(self, tables: JsonObject) -> Plan:
        if isinstance(tables.get("target"), str):
            tables = {**tables, "target": {"dsn": tables["target"]}}
        own = ("arm", "factor")
        allowed = [k.name for k in keys.TOP] + [*keys.TABLES, *own]
        for name in tables:
            if name not in allowed:
                self.unknown(name, allowed, "", 0)
        top = {k: v for k, v in tables.items() if k not in keys.TABLES and k not in own}
        head = self.check(top, keys.TOP, "", 0)
        parts = {}
        for name, table in keys.TABLES.items():
            if not isinstance(tables.get(name, {}), dict):
                self.fail(f"{name} must be a table: write [{name}]", "", name, 0)
            parts[name] = self.check(tables.get(name, {}), table, name, 0)
        factors: list[str] = []
        has_command = "command" in parts["workload"]
        if "factor" in tables:
            arms = self.arms(tables["arm"], has_command) if "arm" in tables else []
            factors, arms = arms_of(self, tables["factor"], head.get("design", ""), arms)
        else:
            arms = self.arms(tables.get("arm"), has_command)
        if (asked := parts["verdict"].get("factor")) is not None and asked not in factors:
            known = (
                f"one of {', '.join(factors)}" if factors else "leave it out: only plans with [[factor]] have factors"
            )
            self.fail(f"the plan has no factor {asked!r}", "verdict", "factor", 0, known)
        return replace(self.assemble(head, parts, arms), factors=factors, kind="sweep" if factors else "experiment")

    def assemble(self, head: JsonObject, parts: dict[str, JsonObject], arms: list[Arm]) -> Plan:
        schedule, verdict, load = parts["schedule"], parts["verdict"], parts["load"]
        for why, table, key, at in replay.unfit_keys(parts, arms):
            self.fail(why, table, key, at)
        if given := replay.unfit_verdict(parts["workload"], verdict):
            self.fail(given, "verdict", "metric", 0, "choose mean, p50, p90, p99 or p99.9")
        for own in ("turn", "slice", "settle"):
            if own in schedule:
                schedule[f"{own}_ns"] = schedule.pop(own)
        if "turn_ns" in schedule and "turn_transactions" in schedule:
            self.fail("give turn or turn_transactions, not both", "schedule", "turn", 0)
        self.check_slices(Schedule(**schedule), len(arms))
        if "metric" in verdict:
            verdict["headline"] = verdict.pop("metric")
        elif replay.is_paced(parts["workload"]):
            verdict["headline"] = "mean"
        rates = [load.get("rate_per_s") if a.rate_per_s is None else a.rate_per_s for a in arms]
        if verdict.get("headline") == "throughput" and all(rates):
            self.fail(
                "in an open loop the rate is given, so throughput cannot be the metric of the verdict",
                "verdict",
                "metric",
                0,
                "choose mean, p50, p90, p99 or p99.9",
            )
        if "latency_limit" in parts["workload"] and not all(rates):
            self.fail(
                "latency_limit needs rate_per_s: a closed loop has no intended start", "workload", "latency_limit", 0
            )
        dsn, below = self.below(parts["target"].get("dsn"), "target", 0)
        return Plan(
            title=head["title"],
            question=head.get("question", ""),
            arms=arms,
            workload=self.workload(parts["workload"], arms),
            dsn=self.target(dsn, "command" in parts["workload"]),
            alter_system=parts["target"].get("alter_system", False),
            sessions=load.get("sessions", 1),
            rate_per_s=load.get("rate_per_s"),
            statement_timeout_ns=load.get("statement_timeout"),
            network=load.get("network", {}),
            device={**below, **parts["target"].get("device", {})},
            schedule=Schedule(**schedule),
            watch=Watch(**parts["watch"]),
            judge=Judge(**verdict),
            toml=self.text,
            **hosts.read(self, load),
        )

    def below(self, dsn: str | None, where: str, at: int) -> tuple[str | None, dict[str, str]]:
        """Return the engine of a target, and its devices."""
        try:
            return devices.split_target(dsn)
        except PlanError as error:
            self.fail(error.message, where, "dsn", at, error.next_step)

    def check_slices(self, schedule: Schedule, arms: int) -> None:
        """Fail if a block would have more slices than the evidence can number."""
        if schedule.switch == "turns" or schedule.turn_transactions is not None:
            return
        turn_ns = schedule.turn_ns or SLICED_TURN_NS
        slices = arms * turn_ns // schedule.slice_ns
        if slices > keys.SLICES_MOST:
            self.fail(
                f"{slices:,} slices in a block; at most {keys.SLICES_MOST:,}",
                "schedule",
                "turn" if schedule.turn_ns else "slice",
                0,
                "make slices longer or turns shorter, or use more blocks: they make intervals narrower",
            )

    def target(self, name: str | None, has_command: bool) -> str | None:
        """Return the target; for commands it is always this host, which the plan need not name."""
        if has_command and name not in (None, HOST, COMMANDS):
            self.fail(f"a command runs on this host, not on {without_secrets(name)}", "target", "dsn", 0)
        return COMMANDS if has_command else target_of_plan_file(self.path, name)

    def workload(self, table: JsonObject, arms: list[Arm]) -> Workload:
        table = dict(table)
        if "latency_limit" in table:
            table["latency_limit_ns"] = table.pop("latency_limit")
        if "expected_errors" in table:
            table["expected_errors"] = self.expected(table["expected_errors"], "workload", 0)
        builtin = table.get("builtin")
        ways = [way for way in ("scripts", "builtin", "kind", "command", "replay") if way in table]
        if len(ways) > 1:
            self.fail(f"give {' or '.join(ways)}, not both", "workload", ways[-1], 0)
        if "prepare" in table and "command" not in table:
            self.fail("prepare runs before a command: name a command", "workload", "prepare", 0)
        if "files" in table and "command" not in table:
            self.fail("files are made for a command: name a command", "workload", "files", 0)
        if "parameters" in table and "kind" not in table:
            self.fail("parameters are those of a typed workload: name the workload's kind", "workload", "parameters", 0)
        if builtin:
            own = builtin_workload(builtin, table.get("scale", 1))
            table["scripts"] = own.scripts
            table["setup"] = own.setup + table.get("setup", [])
            table["teardown"] = table.get("teardown", []) + own.teardown
        elif "replay" in table:
            table |= self.replay(table)
        elif not ways and any(arm.scripts is None for arm in arms):
            self.fail(
                "the workload needs scripts (or builtin, kind, command, or replay), or every arm needs its own scripts",
                "workload",
                "",
                0,
            )
        return Workload(**{"scripts": [], **table})

    def replay(self, table: Mapping[str, Any]) -> JsonObject:
        """Return a captured run's path, resolved from the plan's folder, and a placeholder script; check the speed."""
        from dbdyno.base.errors import TraceError
        from dbdyno.trace.proxy.replay import speed_of

        try:
            speed_of(table.get("speed", replay.FASTEST))
        except TraceError as error:
            self.fail(error.message, "workload", "speed", 0, error.next_step)
        run = str(self.path.parent.absolute() / table["replay"])
        return {"replay": run, "scripts": [Script(replay.NAME, replay.PLACEHOLDER)]}

    def expected(self, given: list[str], where: str, at: int) -> list[str]:
        """Return expected errors as codes, each once."""
        codes, unknown = resolve_codes(given)
        if unknown is not None:
            message = f"{unknown!r} is neither the SQLSTATE of an error nor the name of a condition"
            self.fail(message, where, "expected_errors", at, suggestion(unknown))
        return codes

    def arms(self, tables: Any, has_command: bool) -> list[Arm]:
        if not isinstance(tables, list) or not tables or not isinstance(tables[0], dict):
            self.fail(
                "the plan has no arm: write [[arm]] once for each variant, or [[factor]] for what differs", "", "arm", 0
            )
        if len(tables) > keys.ARMS_MOST:
            self.fail(f"{len(tables)} arms; a plan has at most {keys.ARMS_MOST}", "arm", "", keys.ARMS_MOST)
        arms = [Arm(**self.arm_values(self.check(t, keys.ARM, "arm", at), "arm", at)) for at, t in enumerate(tables)]
        seen: set[str] = set()
        for at, arm in enumerate(arms):
            if arm.name in seen:
                self.fail(f"two arms are named {arm.name!r}", "arm", "name", at)
            if not arm.name.strip() or len(arm.name) > 60 or not arm.name.isprintable():
                self.fail("an arm's name is 1 to 60 printable characters", "arm", "name", at)
            seen.add(arm.name)
        for at, arm in enumerate(arms):
            if arm.server is not None and arm.dsn is not None:
                self.fail("an arm has either a dsn or a server that is started for it", "arm", "server", at)
            if arm.command is not None and not has_command:
                self.fail("an arm has a command, but the workload has none", "arm", "command", at)
            if arm.against is not None and arm.against not in seen:
                self.fail(f"no arm is named {arm.against!r}", "arm", "against", at)
        return arms

    def arm_values(self, own: JsonObject, where: str, at: int) -> JsonObject:
        """Return an arm's values in the form of `Arm`: one protocol, the client's path relative to the plan file."""
        if "statement_mode" in own:
            if "protocol" in own:
                self.fail("give protocol or statement_mode, not both", where, "statement_mode", at)
            own["protocol"] = keys.STATEMENT_MODES[own.pop("statement_mode")]
        own["dsn"], below = self.below(own.get("dsn"), where, at)
        if below:
            own |= {"device": {**below, **own.get("device", {})}, "dsn": None if own["dsn"] in EMBEDDED else own["dsn"]}
        client = own.get("client")
        if client is not None and not (client and all(word.strip() for word in client[:1])):
            self.fail(f"{_dotted_key(where, 'client')} is empty", where, "client", at)
        if client == keys.OWN_CLIENT:
            own["client"] = None
        if isinstance(client, list) and "/" in client[0]:
            own["client"] = [str(self.path.parent.absolute() / client[0]), *client[1:]]
        return own

    def check(self, table: JsonObject, allowed: tuple[Key, ...], where: str, at: int) -> JsonObject:
        """Return the table's values in the form that the plan needs; fail at the first invalid value."""
        by_name = {key.name: key for key in allowed}
        values = {}
        for name, value in table.items():
            if name not in by_name:
                self.unknown(name, list(by_name), where, at)
            values[name] = self.value(by_name[name], value, where, at)
        for key in allowed:
            if key.required and key.name not in values:
                self.fail(f"{_dotted_key(where, key.name)} is missing", where, "", at)
        return values

    def value(self, key: Key, value: Any, where: str, at: int) -> Any:
        name = _dotted_key(where, key.name)
        if not keys.matches(key, value):
            found = f"{value!r}"[:60]
            self.fail(f"{name} must be {keys.TYPE_WORDS[key.type]}, found {found}", where, key.name, at)
        wrong = [item for item in (value if isinstance(value, list) else [value]) if item not in key.choices]
        if key.choices and wrong:
            self.fail(
                f"{name} must be one of {', '.join(key.choices)}, found {wrong[0]!r}",
                where,
                key.name,
                at,
            )
        if key.type == "duration":
            return self.duration(key, value, where, at)
        self.check_limits(key, value, value, where, at)
        return self.convert(key, value, where, at)

    def check_limits(self, key: Key, number: Any, shown: Any, where: str, at: int) -> None:
        """Fail if a number is outside its limits; NaN is outside all limits."""
        low, high = (-math.inf if key.low is None else key.low), (math.inf if key.high is None else key.high)
        if (limits := keys.limits(key)) and not low <= number <= high:
            self.fail(f"{_dotted_key(where, key.name)} must be {limits}, found {shown}", where, key.name, at)

    def duration(self, key: Key, text: str, where: str, at: int) -> int:
        """Return a duration in nanoseconds; fail if it is outside its limits."""
        nanoseconds = duration_ns(text)
        if nanoseconds is None:
            words = keys.TYPE_WORDS["duration"]
            self.fail(f"{_dotted_key(where, key.name)} must be {words}, found {text!r}", where, key.name, at)
        self.check_limits(key, nanoseconds / 1e9, text, where, at)
        return nanoseconds

    def convert(self, key: Key, value: Any, where: str, at: int) -> Any:
        if key.type == "texts":
            return [value] if isinstance(value, str) else value
        if key.type in ("settings", "words"):
            return {k: _word(v) for k, v in value.items()}
        if key.type == "server":
            own = self.check(value, keys.SERVER, where, at)
            folders: JsonObject = {
                name: str(self.path.parent / own[name]) for name in ("bindir", "workdir") if name in own
            }
            return Server(**{**own, **folders})
        if key.type in ("device", "network"):
            return (devices if key.type == "device" else network).read(self, value, where, at)
        if key.type == "scripts":
            return [self.script(item, number, where, at) for number, item in enumerate(value)]
        return value

    def script(self, item: Any, number: int, where: str, at: int) -> Script:
        if isinstance(item, str):
            item = {"file": item}
        if not isinstance(item, dict):
            self.fail(
                f'a script is a table such as {{file = "a.sql"}}, found {item!r}',
                where,
                "scripts",
                at,
            )
        own = self.check(item, keys.SCRIPT, where, at)
        expected = self.expected(own.get("expected_errors", []), where, at)
        if ("file" in own) == ("text" in own):
            self.fail("a script needs either file or text", where, "scripts", at)
        if "text" in own:
            name = own.get("name", f"script {number + 1}")
            return Script(name, own["text"], own.get("weight", 1), expected)
        file = self.path.parent / own["file"]
        try:
            text = read_user_file(file)
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            self.fail(f"script file {file} cannot be read: {reason}", where, "scripts", at)
        return Script(own.get("name", file.name), text, own.get("weight", 1), expected)

    def unknown(self, name: str, allowed: list[str], where: str, at: int) -> NoReturn:
        if homes := [home for home in keys.tables_with(name) if home != f"[{where}]"]:
            here = f"[{where}]" if where else "the top"
            self.fail(f"{name!r} is not a key of {here}", where, name, at, f"move it to {' or '.join(homes)}")
        near = difflib.get_close_matches(name, allowed, 1)
        step = f"did you mean {near[0]!r}?" if near else f"use only the keys {', '.join(allowed)}"
        self.fail(f"unknown key {_dotted_key(where, name)!r}", where, name, at, step)

    def fail(self, message: str, table: str, key: str, at: int, step: str | None = None) -> NoReturn:
        line = self.line_of(table, key, at)
        place = f"{self.path}:{line}" if line else str(self.path)
        raise PlanError(message, where=place, next_step=step)

    def line_of(self, table: str, key: str, at: int) -> int | None:
        """Return the line of a key in the `at`-th table of this name, or of its header if there is no such key."""
        current, seen, head = "", -1, None
        for number, line in enumerate(self.lines, 1):
            if match := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]\]?", line):
                current = match[1]
                seen += current == table
                if current == table and seen == at and head is None:
                    head = number
                if not table and current == key:
                    return number
            inside = current == table and (not table or seen == at)
            if inside and key and re.search(rf'(^|[\s{{,])"?{re.escape(key)}"?\s*=', line):
                return number
        return head


def _dotted_key(table: str, key: str) -> str:
    return f"{table}.{key}" if table else key


def _word(value: str | float | bool) -> str:
    """Return a setting's value in the notation of the engine, such as `on` for true."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
