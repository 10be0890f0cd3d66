"""Plans of experiments that could refute a recommendation: the current value of a setting against the proposed one.

Both run under the same load. A written plan names no server: it runs on the embedded engine unless the user adds a
server. One comment in the plan is for `--prove`: the advice that the plan tests, and a code that shows whether the file
is unchanged.

    # advice: {"rule": "wal_buffers", "subject": "wal_buffers", "setting": "wal_buffers", "found": "4MB", ...}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from dbdyno.advise.formatting import MIB, duration, setting_bytes, share, size
from dbdyno.base.errors import AdviceError
from dbdyno.base.escaping import escape_line
from dbdyno.evidence.seal import is_own_plan, seal

MARK = "# advice: "
_MIX = "built-in "
SCALE_BYTES = 16 * MIB
_LONGEST = 400
SESSIONS = 4


@dataclass(frozen=True, slots=True)
class AdvisedChange:
    """A change that a rule proposed; `engine` is the system identifier of its server, or "" if that is not known."""

    rule: str
    subject: str
    setting: str
    found: str
    proposed: str
    engine: str


@dataclass(frozen=True, slots=True)
class Experiment(AdvisedChange):
    """The advice that an experiment tests.

    If `gains` is True, the proposed value is expected to be faster, otherwise only not to be slower. `predicted` is
    the change of throughput that a calibrated machine predicts for this load, with the ends of its band; None without
    such a machine.
    """

    load: str
    gains: bool = True
    predicted: tuple[float, float, float] | None = None

    @property
    def arms(self) -> list[dict[str, str]]:
        """Return the settings of the two arms."""
        return [{self.setting: self.found}, {self.setting: self.proposed}]

    @property
    def is_blind(self) -> bool:
        """Return True if the result "no difference" proves nothing for this setting and load.

        Planner costs only matter for statements whose plan changes, and a built-in workload may have none.
        """
        return self.load.startswith(_MIX) and self.setting not in _WAYS


@dataclass(frozen=True, slots=True)
class Load:
    """The workload: a user's script, or a built-in workload by name."""

    name: str
    script: str | None = None


def load_name(load: Load) -> str:
    """Return the name of a load as it is stored in `Experiment.load`."""
    return f"your {load.name}" if load.script is not None else _MIX + load.name


@dataclass(frozen=True, slots=True)
class _Way:
    """How a setting is tested: the most sensitive built-in workload, the schedule, and a note to the user."""

    mix: str
    note: str
    schedule: str = "blocks = 20"


_RESTART = "Each turn begins with a restart. dbdyno restarts only embedded servers: --target postgres."
_SESSION = "Each session sets it for itself only; other sessions are not affected."
_RELOAD = (
    "On a shared server this needs ALTER SYSTEM and a reload, which affect all sessions: allow it below (alter_system "
    "= true). The old value is restored."
)
_WAYS = {
    "shared_buffers": _Way("select-only", _RESTART, "blocks = 12"),
    "huge_pages": _Way("select-only", f"{_RESTART} The kernel must have free huge pages.", "blocks = 12"),
    "wal_buffers": _Way("tpcb-like", _RESTART, "blocks = 12"),
    "max_wal_size": _Way(
        "tpcb-like",
        f"{_RELOAD} A turn must contain three checkpoints or more: if it does not, make it longer.",
        'blocks = 8\nwarmup_blocks = 1\nturn = "5min"',
    ),
    "track_io_timing": _Way("select-only", f"{_SESSION} Only a superuser may."),
    "synchronous_commit": _Way("tpcb-like", _SESSION),
    "commit_delay": _Way("tpcb-like", f"{_SESSION} Only a superuser may."),
}
_PLANNER = _Way(
    "oltp-read-only", f"{_SESSION} Only statements whose plan changes can show a difference, and a mix may have none."
)


def untestable(finding: Mapping[str, Any], load: Load | None) -> str:
    """Return why no plan can be written for a finding, or "" if one can."""
    test = finding.get("test")
    if not test:
        return "not testable by a setting: check manually what would refute it"
    if not test["found"]:
        return f"the value of {test['setting']} on this server is not known"
    if test["found"] == test["proposed"]:
        return f"{test['setting']} is {test['found']} already"
    if test["of_statement"] and (load is None or load.script is None):
        return f"it is about one {finding['subject']}: give that as --workload script.sql; no built-in mix contains it"
    return ""


def plan_text(model: Mapping[str, Any], finding: Mapping[str, Any], load: Load | None) -> str:
    """Return the plan of a finding that is testable (`untestable` returns "")."""
    test, facts = finding["test"], model["facts"]
    way = _WAYS.get(test["setting"], _PLANNER)
    ran = load or Load(way.mix)
    experiment = Experiment(
        rule=finding["rule"],
        subject=finding["subject"],
        setting=test["setting"],
        found=test["found"],
        proposed=test["proposed"],
        engine=facts.get("identity") or "",
        load=load_name(ran),
        gains=test["gains"],
        predicted=_prediction_of(finding, load_name(ran)),
    )
    comments = _comments(finding, facts, experiment, way, load)
    body = "".join(f"# {escape_line(one, _LONGEST)}\n" if one else "#\n" for one in comments) + "\n"
    body += _body(experiment, ran, way, _sessions(finding))
    about = {name: value for name, value in asdict(experiment).items() if value is not None}
    head = json.dumps({**about, "seal": seal({"advice": about, "text": body})})
    return f"{MARK}{_escape_del(head)}\n{body}"


def read(text: str, where: str) -> tuple[Experiment, bool]:
    """Return the advice that a plan tests, and whether the plan is unchanged since this user's dbdyno wrote it.

    Raises:
        AdviceError: the plan does not test a recommendation.
    """
    first, _, body = text.partition("\n")
    lacks = AdviceError(
        "is not a plan that `dbdyno advise --plan` wrote: its first line does not say which advice it tests",
        where=where,
        next_step="write such plans with `dbdyno advise DSN --plan DIR`, or run this one with `dbdyno run`",
    )
    if not first.startswith(MARK):
        raise lacks
    try:
        given = json.loads(first.removeprefix(MARK))
        about = {one.name: given[one.name] for one in fields(Experiment) if one.name != "predicted"}
        if (band := given.get("predicted")) is not None:
            value, low, high = band
            about["predicted"] = (float(value), float(low), float(high))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise lacks from error
    words = [value for name, value in about.items() if name not in ("gains", "predicted")]
    if not all(isinstance(value, str) for value in words) or not isinstance(about["gains"], bool):
        raise lacks
    own = is_own_plan({"advice": about, "text": body}, given.get("seal"))
    return Experiment(**about), own


def _comments(
    finding: Mapping[str, Any], facts: Mapping[str, Any], experiment: Experiment, way: _Way, load: Load | None
) -> list[str]:
    engine = f"{facts.get('engine') or ''} {facts.get('version') or ''}".strip()
    evidence = [
        f"- {one['what']}: {_figure(one['value'], one['unit'])} ({one['place']})" for one in finding["evidence"]
    ]
    same = experiment.gains and not experiment.is_blind
    refutes = "slower, or no difference of 2 % (threshold)" if same else "slower"
    own = (
        ""
        if load is not None
        else (f"The load is the built-in mix {way.mix}. Your own load is the better test: --workload script.sql.")
    )
    return [
        f"Tests the advice {finding['rule']}: {finding['sentence']}",
        f"Given for {facts.get('title')} ({engine}), because of these figures:",
        *evidence,
        f"Expected: {finding['expected']}",
        f"Refuted by this plan: {experiment.proposed} is {refutes}. According to the rule: {finding['refuted_by']}",
        f"Risk: {finding['risk']}",
        *([own] if own else []),
        way.note,
        "",
        "On that server, or better on a copy of it: dbdyno advise --prove THIS --target DSN",
        "On an embedded server, which has none of your data: dbdyno advise --prove THIS --target postgres",
    ]


def _prediction_of(finding: Mapping[str, Any], load: str) -> tuple[float, float, float] | None:
    """Return what a machine predicts for exactly this load, or None."""
    found = finding.get("predicted") or {}
    if found.get("load") != load:
        return None
    return found["throughput"], found["low"], found["high"]


def _sessions(finding: Mapping[str, Any]) -> int:
    """Return the number of sessions for which an effect was predicted, or four if there is no prediction."""
    return (finding.get("predicted") or {}).get("sessions") or SESSIONS


def _body(experiment: Experiment, load: Load, way: _Way, sessions: int) -> str:
    title = f"{experiment.setting} {experiment.found} against {experiment.proposed}"
    question = (
        f"Is {experiment.setting} = {experiment.proposed} faster than {experiment.found}?"
        if experiment.gains
        else f"Does {experiment.setting} = {experiment.proposed} cost no time?"
    )
    if load.script is None:
        work = f"builtin = {_toml_string(load.name)}\nscale = {_scale(experiment)}"
    else:
        work = f"scripts = [{{name = {_toml_string(load.name)}, text = {_toml_string(load.script)}}}]"
    parts = [f"title = {_toml_string(title)}\nquestion = {_toml_string(question)}"]
    if way.note.startswith(_RELOAD):
        parts.append("[target]\n# alter_system = true")
    parts += [
        f"[workload]\n{work}",
        f"[load]\nsessions = {sessions}",
        f"[schedule]\n{way.schedule}",
        "[verdict]\nthreshold = 0.02  # the smallest difference that matters to you",
    ]
    for name, settings in zip(("found", "proposed"), experiment.arms, strict=True):
        (value,) = settings.values()
        parts.append(f'[[arm]]\nname = "{name}"\nsettings = {{{experiment.setting} = {_toml_string(value)}}}')
    return "\n\n".join(parts) + "\n"


def _scale(experiment: Experiment) -> int:
    """Return the scale for a test of a cache: twice the data that the smaller cache holds, from 10 to 100 units.

    It is 10 for all other settings.
    """
    if experiment.setting != "shared_buffers":
        return 10
    return min(max(math.ceil(2 * setting_bytes(experiment.found) / SCALE_BYTES), 10), 100)


def _toml_string(text: str) -> str:
    return _escape_del(json.dumps(text, ensure_ascii=False))


def _escape_del(text: str) -> str:
    """Return JSON text made valid for TOML: only the DEL character has to be escaped."""
    return text.replace("\x7f", "\\u007f")


def _figure(value: Any, unit: str) -> str:
    """Return a figure of evidence as text for a comment."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "-" if value is None else str(value)
    if unit == "bytes":
        return size(value)
    if unit == "ns":
        return duration(value / 1e9)
    return share(value) if unit in ("share", "ratio") else f"{value:,}"
