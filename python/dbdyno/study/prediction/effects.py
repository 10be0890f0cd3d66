"""Effects of one change to a calibrated machine: the relative changes of throughput and of p99, each with a band.

The states before and after the change are simulated with the same random numbers and the same parameters. This is
repeated with parameters drawn from their intervals. The uncertainty of the machine mostly cancels in the ratio; the
band shows the uncertainty that remains.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbdyno.base.postgres_types import PostgresScript
from dbdyno.model.postgres import SimulationResult, simulate
from dbdyno.stats.means import Estimate
from dbdyno.study.prediction.compare import CalibratedMachine
from dbdyno.study.prediction.whatif import bottleneck, drawn_settings, intervals

DRAWS = 5
TRANSACTIONS = 5_000


class Band(Estimate):
    """A relative change (ratio - 1), with the lowest and highest over the drawn machines."""

    @property
    def as_text(self) -> str:
        """Return the change as text: `+35 % (+28 to +41 %)`."""
        value, low, high = (f"{round(one * 100) + 0:+} %" for one in (self.value, self.low, self.high))
        return f"{value} ({low} to {high})"


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of a change.

    Attributes:
        throughput: Effect on throughput.
        p99: Effect on the 99th percentile of transaction times.
        binds: Bottleneck before the change.
        then_binds: Bottleneck after the change.
    """

    throughput: Band
    p99: Band
    binds: str
    then_binds: str


@dataclass(frozen=True)
class State:
    """A machine (TOML) with settings of the model and a number of sessions."""

    machine: str
    sessions: int
    settings: Mapping[str, str] = field(default_factory=dict)


class Effects:
    """Effects of changes to one state, which is simulated only once."""

    def __init__(
        self, machine: CalibratedMachine, state: State, scripts: Sequence[PostgresScript] = (), *, seed: int = 1
    ) -> None:
        self.state = state
        self._scripts = scripts
        self._draws = self._draw_parameters(machine, seed)
        self._before = [self._run(state, draw) for draw in self._draws]

    @property
    def state_result(self) -> SimulationResult:
        """Return the result of simulating the state before any change, on the machine as calibrated."""
        return self._before[0]

    def effect_of(self, after: State) -> Effect:
        """Return the effect of changing the state to another one."""
        found = [self._run(after, draw) for draw in self._draws]
        pairs = list(zip(self._before, found, strict=True))
        return Effect(
            _band([new.throughput_per_s / old.throughput_per_s for old, new in pairs]),
            _band([new.quantile_ns(0.99) / old.quantile_ns(0.99) for old, new in pairs]),
            bottleneck(self.state_result),
            bottleneck(found[0]),
        )

    def _run(self, state: State, draw: Mapping[str, str]) -> SimulationResult:
        return simulate(
            state.machine,
            sessions=state.sessions,
            scripts=self._scripts,
            settings={**draw, **state.settings},
            replications=1,
            transactions=TRANSACTIONS,
        )

    @staticmethod
    def _draw_parameters(machine: CalibratedMachine, seed: int) -> list[dict[str, str]]:
        """Return the changed parameters of each machine to simulate: none for the calibrated one, then random draws."""
        varied, dice = intervals(machine), random.Random(seed)
        return [{}, *(drawn_settings(varied, {}, dice) for _ in range(DRAWS if varied else 0))]


def _band(ratios: Sequence[float]) -> Band:
    return Band(ratios[0] - 1, min(ratios) - 1, max(ratios) - 1)
