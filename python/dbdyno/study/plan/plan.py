"""A plan: a study made concrete. Plain values; reading it from TOML is `plan_file`'s work.

What the sessions do is either scripts or a typed workload (`kind` and `parameters`), which a model
runs as it is and a live engine as scripts made from it (`typed.py`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.run import reading

if TYPE_CHECKING:
    from dbdyno.base.core_types import Script as ScriptSpec

Value = str | int | float | bool | list[str]
HEADLINES = ("throughput", "mean", "p50", "p90", "p99", "p99.9")


@dataclass(frozen=True)
class Script:
    """A workload script in pgbench's syntax. `weight` is its share of the transactions, `expected_errors` are outcomes
    of it beside those of the workload."""

    name: str
    text: str
    weight: int = 1
    expected_errors: list[str] = field(default_factory=list)

    def spec(self) -> ScriptSpec:
        """For the load."""
        own: ScriptSpec = {"name": self.name, "text": self.text, "weight": self.weight}
        return {**own, "expected_errors": self.expected_errors} if self.expected_errors else own


@dataclass(frozen=True)
class Workload:
    """What the sessions do, and the SQL that makes and removes its objects. `kind` names a typed
    workload, `parameters` are its own; `command` is a program of this host, `prepare` what is run before
    each, `files` what is made for them, by the name of the variable that holds its path; `expected_errors` are
    outcomes and no failures, by SQLSTATE or by MariaDB's number; `replay` is a captured run, replayed at a `speed`
    (max: without think times) in an `order`, in copies of the database `template`."""

    scripts: list[Script] = field(default_factory=list)
    kind: str | None = None
    parameters: dict[str, Value] = field(default_factory=dict)
    builtin: str | None = None
    scale: int = 1
    protocol: str = "prepared"
    variables: dict[str, str] = field(default_factory=dict)
    setup: list[str] = field(default_factory=list)
    teardown: list[str] = field(default_factory=list)
    max_tries: int = 1
    latency_limit_ns: int | None = None
    command: str | None = None
    prepare: str | None = None
    files: dict[str, str] = field(default_factory=dict)
    expected_errors: list[str] = field(default_factory=list)
    replay: str | None = None
    speed: str = "max"
    order: str = "none"
    template: str | None = None

    def expects(self) -> bool:
        """Whether any error is an outcome of it."""
        return bool(self.expected_errors) or any(script.expected_errors for script in self.scripts)


@dataclass(frozen=True)
class Schedule:
    """How the arms take turns. `None` means: follows from how the arms differ. On a model a block
    is `transactions` of each session of each arm, after `warmup_transactions` that do not count;
    the lengths in time are those of a live engine."""

    blocks: int = 20
    warmup_blocks: int = 2
    turn_ns: int | None = None
    turn_transactions: int | None = None
    slice_ns: int = 50_000_000
    settle_ns: int | None = None
    switch: str = "auto"
    seed: int | None = None
    transactions: int = 500
    warmup_transactions: int = 50


@dataclass(frozen=True)
class Watch:
    """What is watched beside the load."""

    activity_hz: float = 10.0
    waits: str = "sampled"
    counters: bool = True
    overhead_blocks: int = 2
    statements: bool = False
    statement_cache: bool = False


@dataclass(frozen=True)
class Judge:
    """How the verdict is reached; `operation` is the kind of call whose time is compared, `longest`
    how many of the longest of two arms are looked at apart, `accept` the gates that only warn; `equal_work`: of
    a plan with factors the gate "equal work" holds all levels to the same rows, which it does for arms anyway;
    `factor`: the one that the answer is about; `tail_times`: so many times its median the base's longest operation
    takes at least, or there is no tail that could be judged (0: nothing is presumed)."""

    level: float = 0.95
    threshold: float = 0.02
    headline: str | None = None
    operation: str = "transaction"
    longest: int = 0
    accept: list[str] = field(default_factory=list)
    equal_work: bool = False
    factor: str | None = None
    tail_times: float = 0.0


@dataclass(frozen=True)
class Server:
    """A server that dbdyno starts for an arm: the folder of its programs (None: those of every embedded one), the
    folder in which its own is made (None: that of temporary files), settings from its start on, and further options
    of initdb. Arms with equal servers share one."""

    bindir: str | None = None
    workdir: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    initdb: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Arm:
    """One variant under test; `None` means: as the plan's common value. `parameters` are those of
    the typed workload that differ here, `variables` those of the scripts; `against` names the arm it
    is compared with: the first where it is `None`, none where it is the arm itself; `server` is one of
    its own; with `cold` each of its turns begins with nothing of its data in memory; `command` stands
    for the workload's, `warmup_transactions` (on a model) for the schedule's; `client` is an external program that
    runs its load, by name or by its words, and `fetch_size` how many rows that takes at a time; `levels` says which
    level of each of the plan's factors it stands for; `network` is the line to its server (`study.plan.network`)."""

    name: str
    description: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    before_sql: list[str] = field(default_factory=list)
    after_sql: list[str] = field(default_factory=list)
    scripts: list[Script] | None = None
    sessions: int | None = None
    rate_per_s: float | None = None
    dsn: str | None = None
    protocol: str | None = None
    parameters: dict[str, Value] = field(default_factory=dict)
    against: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    server: Server | None = None
    command: str | None = None
    cold: bool = False
    warmup_transactions: int | None = None
    client: str | list[str] | None = None
    fetch_size: int | None = None
    levels: dict[str, str] = field(default_factory=dict)
    network: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs to know, secrets excepted. `factors` names what its arms differ by, where
    a plan says so: `Arm.levels` has each arm's level of each."""

    title: str
    arms: list[Arm]
    workload: Workload
    question: str = ""
    dsn: str | None = None
    alter_system: bool = False
    sessions: int = 1
    rate_per_s: float | None = None
    statement_timeout_ns: int | None = None
    schedule: Schedule = field(default_factory=Schedule)
    watch: Watch = field(default_factory=Watch)
    judge: Judge = field(default_factory=Judge)
    study: str | None = None
    kind: str = "experiment"
    embedded_settings: dict[str, str] = field(default_factory=dict)
    factors: list[str] = field(default_factory=list)
    network: dict[str, str] = field(default_factory=dict)
    toml: str = ""

    def sessions_of(self, arm: Arm) -> int:
        """Sessions of an arm."""
        return arm.sessions if arm.sessions is not None else self.sessions

    def rate_of(self, arm: Arm) -> float | None:
        """Arrivals a second of an arm; `None` is a closed loop."""
        return arm.rate_per_s if arm.rate_per_s is not None else self.rate_per_s

    def scripts_of(self, arm: Arm) -> list[Script]:
        """Scripts of an arm."""
        return arm.scripts if arm.scripts is not None else self.workload.scripts

    def command_of(self, arm: Arm) -> str:
        """The command of an arm, where commands are run."""
        return arm.command or self.workload.command or ""

    @property
    def what_runs(self) -> str:
        """What a user can run without dbdyno to see why it fails."""
        return "script" if self.workload.command is None else "command"

    def network_of(self, arm: Arm) -> dict[str, str]:
        """The line between the sessions of an arm and its server; empty where it is the machine's own."""
        return {**self.network, **arm.network}

    def parameters_of(self, arm: Arm) -> dict[str, Value]:
        """Parameters of the typed workload of an arm."""
        return {**self.workload.parameters, **arm.parameters}

    @property
    def open_loop(self) -> bool:
        """Whether arrivals are planned by the clock in every arm."""
        return all(self.rate_of(arm) is not None for arm in self.arms)

    def to_dict(self) -> dict[str, object]:
        """The plan as JSON values, as it stands in a manifest: without secrets. `secrets_left_out` says that its SQL
        held some: such a plan is no longer the one that ran."""
        from dbdyno.base.dsn import named_without_secrets, text_without_secrets, without_secrets

        value = asdict(self)
        plain = {name: value[name] for name in ("arms", "workload", "embedded_settings")}
        hidden = named_without_secrets(plain)
        for arm, whole in zip(hidden["arms"], plain["arms"], strict=True):
            whole["dsn"] = arm["dsn"] = without_secrets(whole["dsn"])
            arm["levels"] = whole["levels"]
        value |= hidden | {"toml": text_without_secrets(self.toml), "dsn": without_secrets(self.dsn)}
        if hidden != plain:
            value["secrets_left_out"] = True
        return value


def plan_from_dict(value: dict[str, object]) -> Plan:
    """The plan that `Plan.to_dict` wrote; raises `EvidenceError` for anything else."""
    with reading("plan", "the manifest"):
        return _plan_from_dict(value)


def _plan_from_dict(value: dict[str, Any]) -> Plan:

    def scripts(items: list[dict[str, Any]] | None) -> list[Script] | None:
        return None if items is None else [Script(**item) for item in items]

    value = dict(value)
    value.pop("secrets_left_out", None)
    workload = dict(value.pop("workload"))
    workload["scripts"] = scripts(workload["scripts"])
    arms = [_arm_from(arm, scripts(arm["scripts"])) for arm in value.pop("arms")]
    return Plan(
        arms=arms,
        workload=Workload(**workload),
        schedule=Schedule(**value.pop("schedule")),
        watch=Watch(**value.pop("watch")),
        judge=Judge(**value.pop("judge")),
        **value,
    )


def _arm_from(value: dict[str, Any], scripts: list[Script] | None) -> Arm:
    server = value.get("server")
    return Arm(**{**value, "scripts": scripts, "server": None if server is None else Server(**server)})
