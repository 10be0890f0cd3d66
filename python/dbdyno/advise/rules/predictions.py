"""Rules on the predictions of a calibrated machine: commits, the log's device, cores, and fewer sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share
from dbdyno.advise.kinds import Setting
from dbdyno.advise.predictions import PredictedEffect
from dbdyno.advise.rule import Advice, Evidence, Level, Rule

LEAST = 0.05
"""Minimum gain in throughput for which a change is proposed; the lower end of the band must be above 0, too."""
SHORTER, LOST = 0.20, 0.02
"""Fewer sessions are proposed if p99 falls by at least `SHORTER` and throughput by at most `LOST` (shares)."""
_RESTORED = (
    "the commits of the last moments before a crash are lost (three times wal_writer_delay at most); nothing else"
)


def _evidence(one: PredictedEffect) -> tuple[Evidence, ...]:
    place = f"model of {one.machine.partition(':')[0]}"
    effect = one.effect
    rows = [
        Evidence(f"{one.change} {one.found} to {one.proposed}: throughput", effect.throughput.value, "ratio", place)
    ]
    rows += [Evidence(f"{name} of the band", value, "ratio", place) for name, value in _ends(one)]
    rows.append(Evidence("p99", effect.p99.value, "ratio", place))
    rows += [
        Evidence("binds now", effect.binds, "text", place),
        Evidence("binds then", effect.then_binds, "text", place),
    ]
    return (*rows, *(Evidence("limit", note, "text", place) for note in one.notes))


def _ends(effect: PredictedEffect) -> tuple[tuple[str, float], ...]:
    return ("lower end", effect.effect.throughput.low), ("upper end", effect.effect.throughput.high)


def _advice(effect: PredictedEffect, sentence: str, fix: str, level: Level = "hint", proposed: str = "") -> Advice:
    return Advice(
        sentence,
        _evidence(effect),
        effect.as_text,
        (fix,),
        level=level,
        subject=effect.change,
        proposed=proposed,
        predicted=effect,
    )


def _effects_of(facts: Facts, change: str) -> list[PredictedEffect]:
    return [one for one in facts.rows_of(PredictedEffect) if one.change == change]


def _gainful_effects(facts: Facts, change: str) -> list[PredictedEffect]:
    """Return the effects of a change that are worth proposing."""
    return [
        one
        for one in _effects_of(facts, change)
        if one.effect.throughput.value >= LEAST and one.effect.throughput.low > 0
    ]


def _synchronous_commit(facts: Facts) -> Iterator[Advice]:
    for one in _gainful_effects(facts, "synchronous_commit"):
        yield _advice(
            one,
            f"throughput would rise by {share(one.effect.throughput.value)} if commits did not wait for the log",
            "set synchronous_commit = off  -- in transactions that may be lost in a crash",
            proposed="off",
        )


def _commit_delay(facts: Facts) -> Iterator[Advice]:
    for one in _gainful_effects(facts, "commit_delay"):
        more = one.proposed != "0"
        yield _advice(
            one,
            f"commit_delay = {one.proposed} would "
            + ("let more commits share a flush" if more else "stop waits that gain nothing")
            + f": {share(one.effect.throughput.value)} more throughput",
            f"alter system set commit_delay = {one.proposed}",
            proposed=one.proposed,
        )


def _log_device(facts: Facts) -> Iterator[Advice]:
    good = _gainful_effects(facts, "device")
    if good:
        best = max(good, key=lambda one: one.effect.throughput.value)
        yield _advice(
            best,
            f"throughput would rise by {share(best.effect.throughput.value)} with the log on {best.proposed}",
            f"-- move the log (pg_wal) to a device as fast as {best.proposed}: dbdyno device show {best.proposed}",
        )


def _more_cores(facts: Facts) -> Iterator[Advice]:
    for one in _gainful_effects(facts, "cores"):
        yield _advice(
            one,
            f"throughput would rise by {share(one.effect.throughput.value)} with {one.proposed} cores instead of "
            f"{one.found}",
            f"-- a host with {one.proposed} cores",
        )


def _fewer_sessions(facts: Facts) -> Iterator[Advice]:
    for one in _effects_of(facts, "sessions"):
        p99 = one.effect.p99
        if p99.value <= -SHORTER and p99.high < 0 and one.effect.throughput.value >= -LOST:
            yield _advice(
                one,
                f"{one.proposed} active sessions would reach the throughput of {one.found}, with a p99 shorter by "
                f"{share(-p99.value)}",
                f"-- a pooler between application and server with {one.proposed} server sessions",
            )


def _rule(
    name: str,
    title: str,
    condition: str,
    risk: str,
    judge: Callable[[Facts], Iterator[Advice]],
    setting: str = "",
) -> Rule:
    reads, expects = (Setting, PredictedEffect), "throughput and p99 that a calibrated machine predicts, with a band"
    source = "dbdyno model calibrate, a machine measured here; docs/how-to/predict.md says what it leaves out (2026)"
    refuted = "under the same load, the two values do not differ as predicted; --prove compares them"
    return Rule(name, "predicted", title, reads, condition, expects, risk, source, refuted, judge, setting=setting)


_MORE = "the model predicts at least 5 % more throughput, and its whole band is above 0"
RULES = (
    _rule(
        "asynchronous_commit",
        "Commits that wait for the log",
        _MORE,
        _RESTORED,
        _synchronous_commit,
        "synchronous_commit",
    ),
    _rule(
        "commit_delay",
        "Commits that could share a flush",
        _MORE,
        "each commit that waits takes longer",
        _commit_delay,
        "commit_delay",
    ),
    _rule("log_device", "A faster device for the log", _MORE, "moving pg_wal takes a restart", _log_device),
    _rule("more_cores", "More cores", _MORE, "a larger host costs more", _more_cores),
    _rule(
        "fewer_sessions",
        "More active sessions than the host can serve",
        "with half the sessions the model predicts a p99 shorter by 20 % or more and throughput at most 2 % lower",
        "sessions wait in front of the pooler instead",
        _fewer_sessions,
    ),
)
