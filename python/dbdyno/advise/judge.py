"""Evaluation of all rules: findings, rules without findings, and rules that could not be judged.

Order of the findings: first critical findings, then findings by the share of database time that they may save, then
findings without a measured share, warnings before hints. Findings that an experiment on that engine has refuted come
last.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import setting_bytes
from dbdyno.advise.host.parts import Device, Kernel, Mount
from dbdyno.advise.kinds import MACHINE, PLACES, Server
from dbdyno.advise.predictions import PredictedEffect
from dbdyno.advise.proofs import PROVED, REFUTED, Proof, latest_proof
from dbdyno.advise.recordings import RECORDED
from dbdyno.advise.rule import LEVELS, Advice, InsufficientEvidence, Rule
from dbdyno.advise.services import fix_on_service, why_not_applicable
from dbdyno.advise.stack.parts import Layer
from dbdyno.advise.traces import TRACES
from dbdyno.base.errors import AdviceError
from dbdyno.base.json_types import JsonObject

_OWN = {"trace": TRACES, "recording": RECORDED}
_RULES = Path(__file__).parent / "rules"


@cache
def rules() -> tuple[Rule, ...]:
    """Return all rules in the files under `rules/`, sorted by family and name."""
    found: list[Rule] = []
    for path in sorted(_RULES.glob("*.py")):
        if path.stem != "__init__":
            module = importlib.import_module(f"dbdyno.advise.rules.{path.stem}")
            found += getattr(module, "RULES", None) or [module.RULE]
    return tuple(sorted(found, key=lambda one: (one.family, one.name)))


def choose_rules(only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Rule, ...]:
    """Return the rules to evaluate: all, or only those named (by name or family), without those skipped.

    Raises:
        AdviceError: no rule and no family has this name.
    """
    every = rules()
    names = {one.name for one in every} | {one.family for one in every}
    for name in (*only, *skip):
        if name not in names:
            import difflib

            near = difflib.get_close_matches(name, sorted(names), 1)
            raise AdviceError(
                f"there is neither a rule nor a family of rules named {name!r}",
                next_step=f"did you mean {near[0]}?" if near else "list the rules with `dbdyno advise rules`",
            )
    return tuple(
        one
        for one in every
        if (not only or {one.name, one.family} & set(only)) and not {one.name, one.family} & set(skip)
    )


def judge(facts: Facts, rules: Iterable[Rule], proofs: Sequence[Proof] = ()) -> JsonObject:
    """Return the model of the page: findings in order, rules without findings, rules not judged with the reason.

    `proofs` are the results of experiments so far.
    """
    findings: list[tuple[Rule, Advice, Proof | None]] = []
    engine = _identity(facts)
    unjudged: list[dict[str, str]] = []
    clean: list[str] = []
    for rule in applicable_rules(facts, rules):
        why = _unfit(rule, facts)
        if why is not None:
            unjudged.append(_not_judged(rule, why))
            continue
        answers = list(rule.judge(facts))
        found = [one for one in answers if isinstance(one, Advice)]
        for one in found:
            proof = latest_proof(proofs, engine, rule.name, one.subject, one.proposed)
            findings.append((rule, _with_proved(one, proof), proof))
        unjudged += [_not_judged(rule, one) for one in answers if isinstance(one, InsufficientEvidence)]
        if not answers:
            clean.append(rule.name)
    findings.sort(key=_order)
    return {
        "schema": 1,
        "kind": "advice",
        "facts": _head(facts),
        "findings": [_finding(number, *one, facts) for number, one in enumerate(findings, 1)],
        "not_judged": unjudged,
        "clean": clean,
        "layers": [{**asdict(one), "waits": one.waits} for one in facts.rows.get(Layer, ())],
        "devices": [
            {**asdict(one), "limit": one.limit, "under_way": one.under_way} for one in facts.rows.get(Device, ())
        ],
        "host": list(_host(facts)),
    }


def applicable_rules(facts: Facts, rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules that apply to this kind of evidence.

    For a stack or host these are the rules on machines, for traces or cells the rules on traces or cells, otherwise all
    other rules.
    """
    there = {*facts.rows, *facts.lacking}
    if own_kinds := _OWN.get(facts.kind):
        return [one for one in rules if own_kinds & set(one.reads)]
    of_others = frozenset[type]().union(*_OWN.values())
    found = [(one, MACHINE & set(one.reads)) for one in rules if not of_others & set(one.reads)]
    return [one for one, own in found if bool(own) == (facts.kind in ("stack", "host")) and own <= there]


def _host(facts: Facts) -> Iterator[dict[str, object]]:
    """Yield the settings of a host's kernel and mounts."""
    for kernel in facts.rows.get(Kernel, ()):
        for name, number in kernel.values.items():
            is_size = name.endswith("_bytes") or "meminfo" in name
            yield {"what": name, "value": number, "unit": "bytes" if is_size else "digits"}
        yield from ({"what": name, "value": word, "unit": "text"} for name, word in kernel.words.items())
        yield {"what": "NUMA nodes", "value": kernel.nodes, "unit": "digits"}
    for mount in facts.rows.get(Mount, ()):
        what = f"mount {mount.folder} ({mount.device})"
        yield {"what": what, "value": " ".join((mount.kind, *mount.options)), "unit": "text"}


def _unfit(rule: Rule, facts: Facts) -> InsufficientEvidence | None:
    """Return why a rule cannot be evaluated, or None."""
    service = _service(facts)
    if reason := why_not_applicable(service, rule.name):
        return InsufficientEvidence(f"on {service} {reason}")
    if facts.engine and facts.engine not in rule.engines:
        return InsufficientEvidence(f"it is for {', '.join(rule.engines)}")
    if rule.least and facts.version_num < rule.least:
        return InsufficientEvidence(f"it needs version {rule.least // 10000}")
    if rule.below and facts.version_num >= rule.below:
        return InsufficientEvidence(f"it is for versions before {rule.below // 10000}")
    for kind in rule.reads:
        lack = facts.missing_evidence(kind)
        if lack is not None:
            return InsufficientEvidence(lack.why, lack.next)
    return None


def _with_proved(advice: Advice, proof: Proof | None) -> Advice:
    """Return the advice with the value that an experiment proved, if the evidence now proposes a smaller one.

    The experiment's own calls with the larger value have made the proposal smaller.
    """
    if proof is None or not proof.is_on_same_engine or proof.verdict != PROVED:
        return advice
    if not setting_bytes(proof.proposed) > setting_bytes(advice.proposed) > 0:
        return advice
    fix = tuple(line.replace(f"'{advice.proposed}'", f"'{proof.proposed}'") for line in advice.fix)
    return replace(advice, proposed=proof.proposed, fix=fix)


def _order(found: tuple[Rule, Advice, Proof | None]) -> tuple[bool, bool, float, int, str, str]:
    rule, one, proof = found
    return (
        _is_refuted(proof, one.proposed),
        one.level != "critical",
        -(one.stake if one.stake is not None else -1.0),
        LEVELS.index(one.level),
        rule.name,
        one.subject,
    )


def _is_refuted(proof: Proof | None, proposed: str) -> bool:
    """Return True if an experiment with exactly this value refuted the advice."""
    return proof is not None and proof.is_on_same_engine and proof.verdict == REFUTED and proof.proposed == proposed


def _head(facts: Facts) -> dict[str, object]:
    server = facts.rows.get(Server)
    about: dict[str, object] = {"title": facts.title, "what": facts.kind, "window": facts.window}
    if server:
        about |= {"engine": server[0].engine, "version": server[0].version, "service": server[0].service}
        about["identity"] = server[0].identity
    return about


def _not_judged(rule: Rule, why: InsufficientEvidence) -> dict[str, str]:
    return {"rule": rule.name, "family": rule.family, "why": why.why, "next": why.next}


def _service(facts: Facts) -> str:
    server = facts.rows.get(Server)
    return str(server[0].service) if server else ""


def _identity(facts: Facts) -> str:
    server = facts.rows.get(Server)
    return str(server[0].identity) if server else ""


def _test(rule: Rule, advice: Advice, facts: Facts) -> dict[str, object] | None:
    """Return the setting that an experiment would vary, or None if no setting can test the advice."""
    if not (rule.setting and advice.proposed):
        return None
    found = facts.setting(rule.setting)
    return {
        "setting": rule.setting,
        "found": found.as_text if found is not None else "",
        "proposed": advice.proposed,
        "of_statement": rule.of_statement,
        "gains": rule.gains,
    }


def _prediction_of(rule: Rule, advice: Advice, facts: Facts) -> dict[str, object] | None:
    """Return the predicted effect, or a note that the setting is not in the model; None if neither applies."""
    if PredictedEffect not in facts.rows:
        return None
    if advice.predicted is not None:
        return advice.predicted.row()
    return {"words": f"{rule.setting} is not in the model: no effect is predicted"} if rule.setting else None


def _proof_row(proof: Proof | None, proposed: str) -> dict[str, object] | None:
    if proof is None:
        return None
    return {
        **asdict(proof),
        "gates": list(proof.gates),
        "counts": proof.is_on_same_engine,
        "words": proof.text_for(proposed),
        "details": proof.details,
        "beside_model": proof.model_comparison,
    }


def _finding(number: int, rule: Rule, advice: Advice, proof: Proof | None, facts: Facts) -> dict[str, object]:
    return {
        "number": number,
        "rule": rule.name,
        "family": rule.family,
        "level": advice.level,
        "subject": advice.subject,
        "sentence": advice.sentence,
        "stake": advice.stake,
        "expected": advice.expected,
        "fix": fix_on_service(advice.fix, _service(facts)),
        "risk": advice.risk or rule.risk,
        "source": advice.source or rule.source,
        "refuted_by": rule.refuted,
        "evidence": [{"what": e.what, "value": e.value, "unit": e.unit, "place": e.place} for e in advice.evidence],
        "test": _test(rule, advice, facts),
        "predicted": _prediction_of(rule, advice, facts),
        "proof": _proof_row(proof, advice.proposed),
        "refuted": _is_refuted(proof, advice.proposed),
    }


def list_rules(rules: Iterable[Rule]) -> Iterator[dict[str, str]]:
    """Yield the rules as rows, for `dbdyno advise rules` and its page."""
    for one in rules:
        yield {
            "rule": one.name,
            "family": one.family,
            "title": one.title,
            "engines": ", ".join(one.engines),
            "versions": _versions(one),
            "reads": ", ".join(PLACES.get(kind, kind.__name__) for kind in one.reads),
            "condition": one.condition,
            "expects": one.expects,
            "risk": one.risk,
            "refuted by": one.refuted,
            "source": one.source,
        }


def _versions(rule: Rule) -> str:
    words = [f"from {rule.least // 10000}"] if rule.least else []
    words += [f"before {rule.below // 10000}"] if rule.below else []
    return " ".join(words) or "all"


def worst_findings(model: Mapping[str, Any], level: str) -> list[str]:
    """Return the findings of this level or a worse one as text, for `--fail-on`; refuted ones are left out."""
    most = LEVELS.index(level)
    return [
        f"{one['rule']}: {one['sentence']}"
        for one in model["findings"]
        if LEVELS.index(one["level"]) <= most and not one["refuted"]
    ]
