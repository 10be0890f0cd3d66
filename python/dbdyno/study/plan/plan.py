"""A plan: a concrete study as plain values; `file` reads it from TOML.

The sessions run either scripts or a typed workload (`kind` and `parameters`). A model runs a typed workload directly, a
live engine runs scripts made from it (`typed_workloads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.run import type_errors_as_evidence_errors

if TYPE_CHECKING:
    from dbdyno.base.core_types import Script as ScriptSpec

Value = str | int | float | bool | list[str]


@dataclass(frozen=True)
class Script:
    """A workload script in pgbench's syntax.

    `weight` is its share of the transactions. `expected_errors` are errors that count as outcomes, in addition to those
    of the workload.
    """

    name: str
    text: str
    weight: int = 1
    expected_errors: list[str] = field(default_factory=list)

    def spec(self) -> ScriptSpec:
        """Return the script as the load generator takes it."""
        own: ScriptSpec = {"name": self.name, "text": self.text, "weight": self.weight}
        return {**own, "expected_errors": self.expected_errors} if self.expected_errors else own


@dataclass(frozen=True)
class Workload:
    """The work of the sessions, and the SQL that creates and removes its objects.

    Attributes:
        scripts: Scripts that the sessions run.
        kind: Name of a typed workload.
        parameters: Parameters of the typed workload.
        builtin: Name of a built-in workload.
        scale: Size of the built-in workload.
        protocol: How statements are sent.
        variables: Values of the scripts' variables.
        setup: SQL that runs before the first block.
        teardown: SQL that runs at the end.
        max_tries: Largest number of attempts of a transaction that ends in a serialization failure or deadlock.
        latency_limit_ns: Delay after which an arrival is dropped [ns].
        command: A program on this host that runs instead of scripts.
        prepare: A command that is run before each run of `command`.
        files: Files made for the commands, by the name of the variable that holds the path.
        expected_errors: Errors that are outcomes, not failures, as SQLSTATEs or MariaDB numbers.
        replay: A captured run to replay.
        speed: Speed of the replay; "max" leaves out think times.
        order: Order of the replay.
        template: Database of which the replay uses copies.
    """

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

    def expects_errors(self) -> bool:
        """Return True if any error is an expected outcome of the workload."""
        return bool(self.expected_errors) or any(script.expected_errors for script in self.scripts)


@dataclass(frozen=True)
class Schedule:
    """How the arms take turns; `None` means that the value is derived from how the arms differ.

    On a model, each session of each arm runs `transactions` in a block, after `warmup_transactions` that do not count.
    The durations apply to a live engine.
    """

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
    """What is observed while the load runs."""

    activity_hz: float = 10.0
    waits: str = "auto"
    counters: bool = True
    overhead_blocks: int = 2
    statements: bool = False
    statement_cache: bool = False


@dataclass(frozen=True)
class Judge:
    """How the verdict is reached.

    Attributes:
        level: Confidence level of the intervals.
        threshold: Smallest relative difference that matters.
        headline: Metric that decides the verdict; None for the default.
        operation: Kind of call whose time is compared.
        longest: Number of operations that are examined as the longest of two arms, counted over both arms; 0 for none.
        accept: Gates whose failure only warns.
        equal_work: True if the gate "equal work" requires the same rows at all levels of a plan with factors, as it
            always does for the arms of other plans.
        factor: The factor that the answer is about.
        tail_times: Smallest ratio of the base's longest operation to its median for a verdict on the tail; 0 for no
            check.
    """

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
    """A server that dbdyno starts for an arm; arms with equal servers share one.

    Attributes:
        bindir: Folder of the server's programs; None for the default of embedded servers.
        workdir: Folder in which the data folder is created; None for the system's folder of temporary files.
        settings: Settings with which it is started.
        initdb: Additional options of initdb.
    """

    bindir: str | None = None
    workdir: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    initdb: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Arm:
    """One variant under test; `None` and empty values mean the plan's common value.

    Attributes:
        name: Name of the arm.
        description: Description of the arm.
        settings: Server settings.
        before_sql: SQL that runs before each turn.
        after_sql: SQL that runs after each turn.
        scripts: Scripts that replace those of the plan.
        sessions: Number of sessions, if it differs from the plan.
        rate_per_s: Arrivals per second, if the rate differs from the plan.
        dsn: Target engine, if it differs from the plan.
        protocol: Protocol, if it differs from the plan.
        parameters: Parameters of the typed workload that differ from the plan.
        against: Name of the arm with which it is compared; None for the first arm, its own name for no comparison.
        variables: Variables of the scripts that differ from the plan.
        server: A separate server that dbdyno starts.
        command: Command, if it differs from the plan.
        cold: True if each turn starts without any of its data in memory.
        warmup_transactions: Number of warm-up transactions on a model, if it differs from the plan.
        client: External program that runs its load, as a name or as the words of a command.
        fetch_size: Number of rows that the client fetches at a time.
        levels: Level of each of the plan's factors.
        network: Emulated network to its server (`study.plan.network`).
        device: Modelled devices below its server (`study.plan.devices`).
    """

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
    device: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs to know except secrets.

    `factors` has the names of the factors, if the plan has any; `Arm.levels` has the levels of an arm. `of_builds` is
    True if the arms are builds of a program (`study.plan.builds`); the arms' values then contain the folders of the
    builds. `hosts` are the hosts that share the load, written as for `--hosts`; `shared_folder` is where they write
    their evidence (`study.plan.hosts`).
    """

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
    device: dict[str, str] = field(default_factory=dict)
    toml: str = ""
    of_builds: bool = False
    hosts: list[str] = field(default_factory=list)
    shared_folder: str | None = None

    def sessions_of(self, arm: Arm) -> int:
        """Return the number of sessions of an arm."""
        return arm.sessions if arm.sessions is not None else self.sessions

    def rate_of(self, arm: Arm) -> float | None:
        """Return the arrivals per second of an arm; `None` for a closed loop."""
        return arm.rate_per_s if arm.rate_per_s is not None else self.rate_per_s

    def scripts_of(self, arm: Arm) -> list[Script]:
        """Return the scripts of an arm."""
        return arm.scripts if arm.scripts is not None else self.workload.scripts

    def command_of(self, arm: Arm) -> str:
        """Return the command of an arm; empty if the plan runs no commands."""
        return arm.command or self.workload.command or ""

    @property
    def runnable_kind(self) -> str:
        """Return "script" or "command": what a user can run without dbdyno to see why the load fails."""
        return "script" if self.workload.command is None else "command"

    def network_of(self, arm: Arm) -> dict[str, str]:
        """Return the network between the sessions of an arm and its server; empty if none is emulated."""
        return {**self.network, **arm.network}

    def device_of(self, arm: Arm) -> dict[str, str]:
        """Return the modelled devices below an arm's server; empty if its data are on this machine's disk."""
        return {**self.device, **arm.device}

    def parameters_of(self, arm: Arm) -> dict[str, Value]:
        """Return the parameters of the typed workload of an arm."""
        return {**self.workload.parameters, **arm.parameters}

    @property
    def is_open_loop(self) -> bool:
        """Return True if every arm has a rate."""
        return all(self.rate_of(arm) is not None for arm in self.arms)

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values for a manifest, without secrets.

        If the SQL contained secrets, the key `secrets_left_out` is set, because the result is then not exactly the plan
        that ran.
        """
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
    """Return the plan that `Plan.to_dict` wrote.

    Raises:
        EvidenceError: `Plan.to_dict` did not write this value.
    """
    with type_errors_as_evidence_errors("plan", "the manifest"):
        return _plan_from_dict(value)


def _plan_from_dict(value: Mapping[str, Any]) -> Plan:

    def scripts(items: list[Mapping[str, Any]] | None) -> list[Script] | None:
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


def _arm_from(value: Mapping[str, Any], scripts: list[Script] | None) -> Arm:
    server = value.get("server")
    return Arm(**{**value, "scripts": scripts, "server": None if server is None else Server(**server)})
