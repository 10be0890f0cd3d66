"""Results of experiments about advice: one small file each, stored for this user.

    ~/.local/state/dbdyno/advice/<number>.json        ($XDG_STATE_HOME, or $DBDYNO_STATE)

A result counts for an engine if the experiment ran on that engine or on a physical copy of it: both have the same
system identifier. A result from another server (for example an embedded one) is shown as such and decides nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.advise.experiments import AdvisedChange, Experiment
from dbdyno.base.errors import AdviceError, Error
from dbdyno.base.files import state_folder
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.manifest import Manifest, Section

_BANDS = ("predicted", "measured")
_TYPED = ("gates", *_BANDS)
PROVED, REFUTED, CANNOT_TELL = "proved", "refuted", "cannot tell"


@dataclass(frozen=True, slots=True)
class Proof(AdvisedChange):
    """A result of an experiment.

    `ran_on` is the system identifier of the server on which the experiment ran, "" if not known; `gates` are the failed
    gates. `predicted` is the change of throughput that a calibrated machine predicts, `measured` the change that the
    run measured, each with the ends of its interval.
    """

    ran_on: str
    verdict: str
    headline: str
    gates: tuple[str, ...]
    run: str
    target: str
    load: str
    at: str
    predicted: tuple[float, float, float] | None = None
    measured: tuple[float, float, float] | None = None

    @property
    def is_on_same_engine(self) -> bool:
        """Return True if the experiment ran on the advised engine itself or on a copy of it."""
        return bool(self.engine) and self.engine == self.ran_on

    @property
    def as_text(self) -> str:
        """Return the result as text: `refuted on 2026-11-23 by run …`, with the server if it was a different one."""
        return self.text_for(self.proposed)

    def text_for(self, proposed: str) -> str:
        """Return the result as text for a recommendation of `proposed`, with the tested value if that is different."""
        elsewhere = "" if self.is_on_same_engine else f" on another server ({self.target})"
        tested = "" if self.proposed == proposed else f" with {self.setting} {self.proposed}"
        return f"{self.verdict}{tested}{elsewhere} on {self.at[:10]} by run {self.run}"

    @property
    def details(self) -> str:
        """Return the load, the measured result and the failed gates."""
        gates = f"; gates failed: {', '.join(self.gates)}" if self.gates else ""
        beside = f"; {self.model_comparison}" if self.model_comparison else ""
        return f"{self.load}: {self.headline}{gates}{beside}"

    @property
    def model_comparison(self) -> str:
        """Return a comparison of the predicted effect with the measured one; "" if either is not known."""
        if self.predicted is None or self.measured is None:
            return ""
        (_, low, high), (_, least, most) = self.predicted, self.measured
        meets = "they agree" if low <= most and least <= high else "they disagree"
        return f"the model predicted {_change(self.predicted)} throughput, measured {_change(self.measured)}: {meets}"


def verdict_of(decision: str, gains: bool, blind: bool = False) -> str:
    """Return what a run's decision means for the advice; with `blind`, "no difference" proves nothing.

    >>> [verdict_of(one, gains=True) for one in ("faster", "same", "unclear")]
    ['proved', 'refuted', 'cannot tell']
    """
    if decision not in ("faster", "slower", "same") or (blind and decision == "same"):
        return CANNOT_TELL
    return PROVED if decision == "faster" or (decision == "same" and not gains) else REFUTED


def _change(band: tuple[float, float, float]) -> str:
    value, low, high = (f"{one:+.1%}".replace("%", " %") for one in band)
    return f"{value} ({low} to {high})"


def _measured_change(analysis: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Return the measured change of throughput from the current value to the proposed value, with its interval."""
    for row in analysis.get("metrics", ()):
        if row.get("metric") == "throughput" and row.get("arm") == 1 and row.get("ratio"):
            return row["ratio"] - 1, row["low"] - 1, row["high"] - 1
    return None


def proof_of(experiment: Experiment, analysis: Mapping[str, Any], manifest: Manifest, run: str) -> Proof:
    """Return the result of an experiment that has run."""
    target, facts = next(iter(manifest.targets.items()), ("?", Section()))
    return Proof(
        **{one.name: getattr(experiment, one.name) for one in fields(AdvisedChange)},
        ran_on=str(facts.get("system_identifier") or ""),
        verdict=verdict_of(str(analysis["verdict"]["decision"]), experiment.gains, experiment.is_blind),
        headline=str(analysis["verdict"]["headline"]),
        gates=tuple(dict.fromkeys(str(gate["name"]) for gate in analysis["gates"] if gate["ok"] is False)),
        run=run,
        target=f"embedded {facts.get('server_version') or ''}".strip() if facts.get("owned") else str(target),
        load=experiment.load,
        predicted=experiment.predicted,
        measured=_measured_change(analysis),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def proof_folder() -> Path:
    """Return the folder of this user's results of experiments."""
    return state_folder() / "advice"


def save_proof(proof: Proof) -> None:
    """Store a result, in addition to the earlier ones.

    Raises:
        AdviceError: the result cannot be stored.
    """
    try:
        proof_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        write_json(proof_folder() / f"{secrets.token_hex(8)}.json", asdict(proof))
    except (OSError, Error) as error:
        said = error.strerror if isinstance(error, OSError) else error.message
        raise AdviceError(
            f"the result cannot be stored: {said}; it is still in run {proof.run}",
            where=str(proof_folder()),
            next_step="free disk space or check the permissions, or name another folder in DBDYNO_STATE",
        ) from error


def stored_proofs() -> list[Proof]:
    """Return all results of this user, oldest first; unreadable files are skipped."""
    found = [_read(path) for path in sorted(proof_folder().glob("*.json"))]
    return sorted((one for one in found if one is not None), key=lambda one: one.at)


def latest_proof(proofs: Iterable[Proof], engine: str, rule: str, subject: str, proposed: str) -> Proof | None:
    """Return the most relevant result about a recommendation for an engine, or None.

    That is the latest result that counts for this engine and tested the proposed value; else one that counts but tested
    another value (the experiment itself adds evidence, which may change the proposed value); else one from another
    server.
    """
    about = [one for one in proofs if engine and (one.engine, one.rule, one.subject) == (engine, rule, subject)]
    return max(about, key=lambda one: (one.is_on_same_engine, one.proposed == proposed, one.at), default=None)


def _band(given: Any) -> tuple[float, float, float] | None:
    if given is None:
        return None
    value, low, high = given
    return float(value), float(low), float(high)


def _read(path: Path) -> Proof | None:
    with contextlib.suppress(Error, OSError, KeyError, TypeError, ValueError):
        given = read_json(path)
        found: JsonObject = {one.name: str(given[one.name]) for one in fields(Proof) if one.name not in _TYPED}
        found["gates"] = tuple(str(one) for one in given["gates"])
        # Results of earlier versions have no bands.
        found |= {name: _band(given.get(name)) for name in _BANDS}
        return Proof(**found)
    return None
