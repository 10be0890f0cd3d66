"""Predictions of a calibrated machine for changes to a server: commit settings, sessions, log device, cores.

    with_machine(facts, Path("mine.toml"), sessions=8, load=None)

The machine represents the server: its device, its delays and the costs of its statements. The machine's settings are
replaced by those of the server. A machine has no buffers, checkpoints or plans, so nothing is predicted about them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from dbdyno.advise.experiments import Load, load_name
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.kinds import Database, Setting
from dbdyno.base.errors import AdviceError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.postgres_types import PostgresScript
from dbdyno.model.machine import machine_of
from dbdyno.model.swap import with_device
from dbdyno.study.prediction.compare import CalibratedMachine, as_settings, scripts_for
from dbdyno.study.prediction.effects import Effect, Effects, State
from dbdyno.study.prediction.parameter import toml_value
from dbdyno.study.prediction.scripts import steps_of
from dbdyno.study.prediction.server import MODELLED, as_parameters

MIX = "tpcb-like"
SCALE = 10
OWN_LOAD = "the load that the machine was calibrated with"
DEVICES = ("gp3", "io2", "nvme-2024")
"""Devices in the catalogue that are tried as the device of the log."""
_SYNC_OFF = {"postgres.synchronous_commit": "false"}


@dataclass(frozen=True, slots=True)
class PredictedEffect:
    """Effect of one change, as a calibrated machine predicts it.

    Attributes:
        change: The kind of change: a setting, `device`, `cores` or `sessions`.
        found: What the server has now.
        proposed: What was tried instead.
        effect: The predicted effect.
        sessions: Number of sessions.
        load: The load, in words.
        machine: The machine's file and title.
        notes: Sentences about statements of this load for which the machine has no costs.
    """

    change: str
    found: str
    proposed: str
    effect: Effect
    sessions: int
    load: str
    machine: str
    notes: tuple[str, ...] = ()

    @property
    def as_text(self) -> str:
        """Return the effect in words."""
        sessions = f"{self.sessions} session{'' if self.sessions == 1 else 's'}"
        throughput, p99 = self.effect.throughput.as_text, self.effect.p99.as_text
        return f"the model predicts throughput {throughput} and p99 {p99}, with {sessions} of {self.load}"

    def row(self) -> JsonObject:
        """Return the effect as values for a page's model; throughput and p99 are changes relative to 1."""
        band, p99 = self.effect.throughput, self.effect.p99
        return {
            "words": self.as_text,
            "throughput": band.value,
            "low": band.low,
            "high": band.high,
            "p99": p99.value,
            "p99_low": p99.low,
            "p99_high": p99.high,
            "sessions": self.sessions,
            "load": self.load,
            "machine": self.machine,
            "notes": list(self.notes),
        }


def without_machine(facts: Facts) -> Facts:
    """Return the evidence with the reason why no effect is predicted: no machine was named."""
    lack = MissingEvidence(
        "no calibrated machine was given", "add --machine mine.toml, a machine made with `dbdyno model calibrate`"
    )
    return replace(facts, lacking={PredictedEffect: lack, **facts.lacking})


def with_machine(facts: Facts, path: Path, sessions: int | None, load: Load | None) -> Facts:
    """Return the evidence with the effects that a calibrated machine predicts for changes.

    Raises:
        AdviceError: The evidence is not from a PostgreSQL server.
        ModelError: The machine was not calibrated, or cannot run the load.
    """
    if facts.engine != "postgres" or facts.kind not in ("server", "snapshots"):
        raise AdviceError(
            "--machine works only with a PostgreSQL server or its snapshots",
            where=facts.title,
            next_step="run for example `dbdyno advise postgresql://me@db1/app --machine mine.toml`",
        )
    fsync = facts.setting("fsync")
    if fsync is not None and not fsync.is_on:
        lack = MissingEvidence(
            "fsync is off: the server never waits for its device, but a modelled machine does", "set fsync = on"
        )
        return replace(facts, lacking={PredictedEffect: lack, **facts.lacking})
    given = CalibratedMachine.from_machine(machine_of(str(path)))
    asked = _Asked(facts, given, sessions or _active(facts), *_scripts(given, load))
    return replace(facts, rows={**facts.rows, PredictedEffect: list(asked.rows())})


def _active(facts: Facts) -> int:
    """Return the mean number of active sessions, at least 1."""
    known: list[Database] = list(facts.rows.get(Database, ()))
    active = sum((one.active_ms or 0.0) / 1e3 / one.span_s for one in known if one.span_s)
    return max(1, math.ceil(active))


def _scripts(machine: CalibratedMachine, load: Load | None) -> tuple[list[PostgresScript], str, tuple[str, ...]]:
    """Return the scripts of a load, its name, and notes on statements whose costs the machine does not know.

    Without a load, a built-in mix is used if the machine has its costs, else the machine's own scripts (an empty list).
    """
    from dbdyno.study.plan.file import parse_plan

    asked = load or Load(MIX)
    work = (
        f'builtin = "{asked.name}"\nscale = {SCALE}'
        if asked.script is None
        else f"scripts = [{{text = {toml_value(asked.script)}}}]"
    )
    plan = parse_plan(f'title = "load"\n[workload]\n{work}\n[[arm]]\nname = "one"\n', Path("load.toml"))
    scripts, notes = scripts_for(machine, steps_of(plan, plan.arms[0]))
    if load is None and notes:
        return [], OWN_LOAD, ()
    return scripts, load_name(asked), tuple(notes)


@dataclass
class _Asked:
    """Input for predicting changes to one server, and the simulations of these changes."""

    facts: Facts
    given: CalibratedMachine
    sessions: int
    scripts: list[PostgresScript]
    load: str
    notes: tuple[str, ...]
    effects: Effects = field(init=False)

    def __post_init__(self) -> None:
        settings = {name: found.as_text for name in MODELLED if (found := self.facts.setting(name)) is not None}
        parameters, _ = as_parameters(settings)
        state = State(self.given.machine.toml, self.sessions, as_settings(parameters))
        self.effects = Effects(self.given, state, self.scripts)

    def rows(self) -> Iterator[PredictedEffect]:
        """Yield the machine's prediction for each change that makes sense on this server."""
        ways: tuple[Callable[[], Iterator[PredictedEffect]], ...] = (self._sync, self._delay, self._device, self._cores)
        for way in (*ways, self._effects_of_fewer_sessions):
            yield from way()

    def _row(self, change: str, found: str, proposed: str, after: State) -> PredictedEffect:
        effect = self.effects.effect_of(after)
        machine = f"{self.given.machine.name}: {self.given.machine.title}"
        return PredictedEffect(change, found, proposed, effect, self.sessions, self.load, machine, self.notes)

    def _state_with(self, settings: dict[str, str]) -> State:
        state = self.effects.state
        return replace(state, settings={**state.settings, **settings})

    @property
    def _waits(self) -> bool:
        """Return True if commits wait for the log device."""
        return self.effects.state_result.commits_per_flush > 0 and _is_on(self.facts.setting("synchronous_commit"))

    def _sync(self) -> Iterator[PredictedEffect]:
        if self._waits:
            found = self.facts.setting("synchronous_commit")
            yield self._row("synchronous_commit", found.value if found else "on", "off", self._state_with(_SYNC_OFF))

    def _delay(self) -> Iterator[PredictedEffect]:
        found = self.facts.setting("commit_delay")
        if found is None or not self._waits:
            return
        half_us = max(round(self.effects.state_result.sync_ns / 2e3, -1), 10.0)
        wanted = ("0",) if found.number > 0 else (f"{half_us:.0f}", f"{2 * half_us:.0f}")
        tried = [
            self._row("commit_delay", found.value, value, self._state_with({"postgres.commit_delay_us": value}))
            for value in wanted
        ]
        yield max(tried, key=lambda one: one.effect.throughput.value)

    def _device(self) -> Iterator[PredictedEffect]:
        if not self._waits:
            return
        state = self.effects.state
        for device in DEVICES:
            yield self._row(
                "device", "as calibrated", device, replace(state, machine=with_device(state.machine, device))
            )

    def _cores(self) -> Iterator[PredictedEffect]:
        cores = round(self.given.machine.number("postgres.cores"))
        more = str(2 * cores)
        yield self._row("cores", str(cores), more, self._state_with({"postgres.cores": more}))

    def _effects_of_fewer_sessions(self) -> Iterator[PredictedEffect]:
        half = self.sessions // 2
        if half:
            yield self._row("sessions", str(self.sessions), str(half), replace(self.effects.state, sessions=half))


def _is_on(setting: Setting | None) -> bool:
    return setting is None or setting.value not in ("off", "false", "no", "0")
