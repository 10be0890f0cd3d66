"""Table of a plan's keys: one row declares a key for the reader, the checker and the example.

A key has a type (`str`, `int`, `float`, `bool`, `duration`, `texts` = string or list of strings, `settings` = table of
values as the engine reads them, `values` = table of values unchanged, `words` = table of strings, `scripts`, `server`),
a meaning, an example for `dbdyno plan new`, and limits (of a duration in seconds). Every number has both limits: any
value within them can be planned, checked and run.
"""

from __future__ import annotations

from typing import Any

from dbdyno.base.decisions import WITHHOLDING
from dbdyno.bench.engine.volumes import DEVICE
from dbdyno.study.plan import devices, hosts, replay
from dbdyno.study.plan.key import Key
from dbdyno.study.plan.workloads import NAMES as WORKLOADS

HOUR_S = 3600
RATE_MOST = 10_000_000
ARMS_MOST = 256
SLICES_MOST = 100_000
"""Largest number of slices of all arms in a block."""

OWN_CLIENT = "dbdyno"
"""Name of dbdyno's own client in plans and studies."""
STATEMENT_MODES = {"literals": "simple", "binds": "extended", "prepared": "prepared"}
"""Ways in which drivers send a statement, with the protocol of each."""
KINDS = ("commit-loop", "update-loop", "key-lookup", "scan-jobs", "sort", "mock")

TOP = (
    Key("title", "str", "a name for the run", '"work_mem for the order report"', required=True),
    Key("question", "str", "what you want to know", '"Does work_mem = 64MB make the order report faster?"'),
    Key(
        "design",
        "str",
        "arms that factors make: every combination of their levels, or one arm with all first levels and\n"
        "further arms that each change one level",
        None,
        choices=("every-combination", "one-at-a-time"),
    ),
)

TARGET = (
    Key(
        "dsn",
        "str",
        "the engine: a libpq URI or key=value string, mariadb://user@host/db, or a model: model:NAME,\n"
        "model:FILE.toml. Without it dbdyno starts an embedded PostgreSQL, with mariadb an embedded MariaDB.\n"
        "Keep passwords in ~/.pgpass, PGPASSWORD or MYSQL_PWD.\n"
        '`target = "..."` at the top is a short form',
        None,
    ),
    Key(
        "alter_system",
        "bool",
        "allow ALTER SYSTEM and a reload (MariaDB: SET GLOBAL) on an engine that dbdyno did not start",
        None,
    ),
    *devices.OF_TARGET,
)

WORKLOAD = (
    Key(
        "scripts",
        "scripts",
        'SQL scripts in pgbench\'s syntax: {file = "a.sql", weight = 3} or {text = "select 1;"};\n'
        "file names are relative to this plan",
        "[{name = \"report\", text = '''\\set half random(0, 1)\n"
        "select count(distinct amount) from orders where id % 2 = :half;'''}]",
    ),
    Key(
        "kind",
        "str",
        "instead of scripts: a typed workload for models; a live engine can run only commit-loop",
        None,
        choices=KINDS,
    ),
    Key("parameters", "values", 'parameters of the typed workload, such as {redo_bytes = "4KiB..12MiB"}', None),
    Key("builtin", "str", "instead of scripts: a built-in workload with its own tables", None, choices=WORKLOADS),
    Key(
        "command",
        "str",
        'instead of scripts: a program of this host, such as "zstd -T{threads} -k -f big", with {name} for\n'
        "a variable; no shell runs it",
        None,
    ),
    Key("prepare", "str", "a command before each operation, which is not timed", None),
    Key(
        "files",
        "words",
        "files that are created for the commands and removed at the end; each is the value of a variable:\n"
        '{corpus = "text 16MiB"} or {source = "c-project 24"}',
        None,
    ),
    *replay.KEYS,
    Key("scale", "int", "size of the built-in workload, in units of 100,000 rows", None, low=1, high=100_000),
    Key("protocol", "str", "how statements are sent", None, choices=("prepared", "extended", "simple")),
    Key("variables", "words", "values for the scripts' :variables", None),
    Key(
        "setup",
        "texts",
        "SQL before the first block, once",
        '["""create table orders as\n'
        "select i as id, random() * 100 as amount\n"
        'from generate_series(1, 100000) i""", "vacuum analyze orders"]',
    ),
    Key("teardown", "texts", "SQL at the end, even after an error", '["drop table orders"]'),
    Key(
        "expected_errors",
        "texts",
        "errors that are outcomes like any other: SQLSTATEs, MariaDB's numbers or condition names,\n"
        'such as ["23505", "raise_exception", "ER_DUP_ENTRY"]; they count in latency and throughput,\n'
        "but not in the gate for errors",
        None,
    ),
    Key(
        "max_tries",
        "int",
        "number of tries for a transaction that ends in a serialization failure or deadlock",
        None,
        low=1,
        high=100,
    ),
    Key(
        "latency_limit",
        "duration",
        "open loop: drop an arrival that is later than this",
        None,
        low=0.000001,
        high=HOUR_S,
    ),
)

LOAD = (
    Key("sessions", "int", "concurrent sessions", "2", low=1, high=10_000),
    Key(
        "rate_per_s",
        "float",
        "open loop: arrivals a second over all sessions; latency then counts from the\n"
        "intended start. Without it, each session continues immediately (closed loop)",
        None,
        low=0.001,
        high=RATE_MOST,
    ),
    Key("network", "network", "a slower network line between the sessions and the server", None),
    *hosts.KEYS,
    Key(
        "statement_timeout", "duration", "the engine cancels a statement that takes longer", low=0.001, high=24 * HOUR_S
    ),
)

SCHEDULE = (
    Key("blocks", "int", "blocks that count", "16", low=2, high=100_000),
    Key("warmup_blocks", "int", "warm-up blocks, recorded but not counted", "2", low=0, high=10_000),
    Key(
        "turn",
        "duration",
        "an arm's share of a block (default: 1 s in slices, 2 s turn by turn, 5 s with a reload,\n15 s with a restart)",
        None,
        low=0.001,
        high=HOUR_S,
    ),
    Key(
        "turn_transactions",
        "int",
        "instead of turn: transactions of an arm in a block",
        None,
        low=1,
        high=1_000_000_000,
    ),
    Key(
        "transactions",
        "int",
        "on a model: transactions of each session in an arm's share of a block",
        None,
        low=1,
        high=1_000_000_000,
    ),
    Key(
        "warmup_transactions",
        "int",
        "on a model: warm-up transactions of each session, which do not count",
        None,
        low=0,
        high=1_000_000_000,
    ),
    Key("slice", "duration", "length of a slice, if arms alternate in slices", '"250ms"', low=0.001, high=HOUR_S),
    Key(
        "settle",
        "duration",
        'load after a switch that is recorded but not counted; "0s" for none',
        None,
        low=0,
        high=HOUR_S,
    ),
    Key(
        "switch", "str", "auto: slices if the arms allow it, otherwise turns", None, choices=("auto", "slices", "turns")
    ),
    Key(
        "seed",
        "int",
        "seed of the order of the arms and of the scripts' random numbers",
        None,
        low=0,
        high=2**63 - 1,
    ),
)

WATCH = (
    Key("activity_hz", "float", "samples of pg_stat_activity per second; 0 = off", "10", low=0, high=1000),
    Key(
        "waits",
        "str",
        "sampled: samples of pg_stat_activity; read: read from the memory of a PostgreSQL on this machine thousands "
        "of times a second, at no cost to it; exact: every wait, timed by probes; auto: read if possible, otherwise "
        "sampled",
        None,
        choices=("auto", "sampled", "read", "exact"),
    ),
    Key("counters", "bool", "read the counters of the engine and the host at the borders of blocks", None),
    Key("overhead_blocks", "int", "blocks that measure the cost of watching", "2", low=0, high=1_000),
    Key("statements", "bool", "also read pg_stat_statements at the borders of blocks: counters per statement", None),
    Key(
        "statement_cache",
        "bool",
        "at the end of a turn, read how many statements a session keeps and how much memory they use: from the log of "
        "an embedded PostgreSQL, or the performance schema of MariaDB",
        None,
    ),
)

VERDICT = (
    Key("level", "float", "confidence level of the intervals", "0.95", low=0.8, high=0.9999),
    Key("threshold", "float", "the smallest difference that matters to you", "0.02", low=0.0001, high=10),
    Key(
        "metric",
        "str",
        "the metric of the headline (default: throughput in a closed loop,\np50 in an open one)",
        None,
        choices=("throughput", "mean", "p50", "p90", "p99", "p99.9"),
    ),
    Key(
        "operation",
        "str",
        "the kind of call whose time is compared; throughput is always that of transactions",
        None,
        choices=("transaction", "commit", "exec"),
    ),
    Key(
        "longest",
        "int",
        "compare this number of the longest operations of two arms separately; 0 = no",
        None,
        low=0,
        high=10_000_000,
    ),
    Key(
        "accept",
        "texts",
        'gates that may fail without withholding the verdict, such as ["work"] if the arms are\n'
        "meant to do different work",
        None,
        choices=WITHHOLDING,
    ),
    Key(
        "factor",
        "str",
        "with factors: the factor of the answer (default: the factor with numeric levels that has most of them)",
        None,
    ),
    Key(
        "tail_times",
        "float",
        "withhold the verdict if the base's longest operation takes less than this number of medians, because there "
        "is then no tail to judge",
        None,
        low=1,
        high=1_000_000,
    ),
    Key(
        "equal_work",
        "bool",
        "with factors: demand that all levels touch the same number of rows per transaction; this always applies to "
        "arms",
        None,
    ),
)

ARM = (
    Key("name", "str", "", '"base"', required=True),
    Key("description", "str", "a description in words", None),
    Key("settings", "settings", "server settings of this arm; on a model its parameters", '{work_mem = "1MB"}'),
    Key("parameters", "values", "parameters of the typed workload, instead of those of [workload]", None),
    Key(
        "against", "str", "the arm that it is compared with (default: the first); its own name for no comparison", None
    ),
    Key("before_sql", "texts", "SQL before each turn of this arm", None),
    Key("after_sql", "texts", "SQL after each turn, even after an error", None),
    Key("scripts", "scripts", "scripts, instead of those of [workload]", None),
    Key("sessions", "int", "number of sessions, instead of that of [load]", None, low=1, high=10_000),
    Key("rate_per_s", "float", "rate, instead of that of [load]", None, low=0.001, high=RATE_MOST),
    Key("dsn", "str", "engine, instead of that of [target]", None),
    Key("protocol", "str", "protocol, instead of the workload's", None, choices=("prepared", "extended", "simple")),
    Key("statement_mode", "str", "the protocol as drivers call it", None, choices=tuple(STATEMENT_MODES)),
    Key(
        "client",
        "client",
        "the program that runs its load: the name of a built-in one, dbdyno for dbdyno's own, or your program as a "
        "list of "
        "words",
    ),
    Key("fetch_size", "int", "rows that the client fetches at a time (default: all)", None, low=1, high=10_000_000),
    Key("variables", "words", "values for the scripts' :variables, instead of those of [workload]", None),
    Key("cold", "bool", "restart its embedded server before each turn, with none of its data in memory", None),
    Key("command", "str", "command, instead of the workload's", None),
    Key(
        "warmup_transactions",
        "int",
        "on a model: warm-up transactions, instead of those of [schedule]",
        None,
        low=0,
        high=1_000_000_000,
    ),
    Key("network", "network", 'network, such as {delay = "5ms"}; missing keys are those of [load]', None),
    Key("server", "server", "a separate server that dbdyno starts, such as another version or build", None),
    *devices.OF_ARM,
)

SERVER = (
    Key("bindir", "str", "folder with initdb and postgres; relative to this plan", '"/opt/pg18/bin"'),
    Key(
        "workdir",
        "str",
        "folder in which its data folder is created and removed, such as one on another disk",
        '"/mnt/fast"',
    ),
    Key(
        "settings",
        "settings",
        "settings from its start, including those that need a restart",
        '{shared_buffers = "1GB"}',
    ),
    Key("initdb", "texts", "options of initdb", '["--data-checksums"]'),
)

SCRIPT = (
    Key("file", "str", "a script file", None),
    Key("text", "str", "the script itself, instead of file", None),
    Key("name", "str", "its name in reports", None),
    Key("weight", "int", "its weight in the mix", None, low=1, high=1_000_000),
    Key(
        "expected_errors",
        "texts",
        "errors that are outcomes of this script, in addition to those of the workload",
        None,
    ),
)

TABLES: dict[str, tuple[Key, ...]] = {
    "target": TARGET,
    "workload": WORKLOAD,
    "load": LOAD,
    "schedule": SCHEDULE,
    "watch": WATCH,
    "verdict": VERDICT,
}

TABLE_MEANING = {
    "target": "where it runs",
    "workload": "what runs",
    "load": "number of sessions, and rate",
    "schedule": "how the arms alternate",
    "watch": "what is observed during the load",
    "verdict": "how the run is judged",
}

TYPE_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "duration": 'a duration such as "50ms", "5s" or "2min"',
    "texts": "a string or a list of strings",
    "settings": "a table of settings",
    "words": "a table of strings",
    "values": "a table of strings, numbers and truth values",
    "scripts": 'a list of scripts such as [{file = "a.sql"}]',
    "server": 'a table such as {bindir = "/opt/pg18/bin"}',
    "client": 'a name such as "psycopg", or the words of a command such as ["java", "-jar", "client.jar"]',
    "network": 'a table such as {delay = "5ms", rate = "100Mbit"}',
} | devices.TYPE_WORDS


def tables_with(name: str) -> list[str]:
    """Return the tables that have a key of this name, as a plan writes them."""
    tables = [f"[{table}]" for table, own in TABLES.items() if any(key.name == name for key in own)]
    tables += ["[[arm]]"] if any(key.name == name for key in ARM) else []
    return tables + (["the top, before the first table"] if any(key.name == name for key in TOP) else [])


def limits(key: Key) -> str:
    """Return the limits of a number or duration as text; empty if it has no limits."""
    if key.low is None and key.high is None:
        return ""
    return f"from {_limit(key, key.low)} to {_limit(key, key.high)}"


_SECONDS = ((86_400, "24h"), (HOUR_S, "1h"), (1, "1s"), (0.001, "1ms"), (0.000001, "1us"), (0, "0s"))


def _limit(key: Key, value: float | None) -> str:
    if key.type == "duration":
        return next(text for seconds, text in _SECONDS if seconds == value)
    return "2^63 - 1" if value == 2**63 - 1 else f"{value:,}"


def matches(key: Key, value: Any) -> bool:
    """Return True if the value has the key's type, whether or not it is within its limits."""
    if key.type == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool) or key.type == DEVICE:
        return isinstance(value, str | dict)
    simple = {"str": str, "int": int, "float": (int, float), "duration": str, "scripts": list, "server": dict}
    if key.type in simple:
        return isinstance(value, simple[key.type])  # type: ignore[arg-type]
    if key.type in ("texts", "client"):
        return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))
    return isinstance(value, dict) and all(isinstance(v, str | int | float | bool) for v in value.values())
