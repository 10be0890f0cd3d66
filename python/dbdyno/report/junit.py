"""A verdict as JUnit XML, so that a build server shows it beside its tests.

There is one test case for the verdict, one per gate and one per metric of each arm. "Slower" and a failed gate that
withholds the verdict are failures; an unknown result is skipped.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base.decisions import WITHHOLDING, decision_named
from dbdyno.pages import format as fmt
from dbdyno.pages import reading

_BAD = ("slower", "failed", "no verdict")
_UNKNOWN = ("unclear", "provisional")


def render_junit(analysis: Mapping[str, Any]) -> str:
    """Return the analysis of a run, or of two runs, as a test suite.

    Raises:
        ReportError: the model has another schema or an unknown kind, or is damaged.
    """
    model = reading.read(analysis)
    run = reading.dig(model, "run") or {}
    name = fmt.line(run.get("title") or "dbdyno", 200)
    cases = list(_cases(model))
    failed = sum(one.find("failure") is not None for one in cases)
    skipped = sum(one.find("skipped") is not None for one in cases)
    counts = {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
    time = f"{fmt.number(run.get('duration_s')) or 0.0:.3f}"
    suite = ET.Element("testsuite", {"name": name, **counts, "time": time})
    suite.extend(cases)
    root = ET.Element("testsuites", counts)
    root.append(suite)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _rehearsal_cases(model: reading.Analysis) -> Iterator[ET.Element]:
    """Yield one case per statement of a rehearsal; statements that were left out are skipped cases."""
    for row in reading.entries(model, "statements"):
        cause = reading.dig(row, "cause") or {}
        case = ET.Element("testcase", {"classname": "statement", "name": fmt.line(row.get("text") or "", 200)})
        message = fmt.line(cause.get("sentence") or row.get("plan_change") or "", 1000)
        decision = str(row.get("decision"))
        if decision in ("slower", "fails", "differs"):
            failure = ET.SubElement(case, "failure", {"message": f"{decision}: {message}", "type": decision})
            failure.text = fmt.line(cause.get("next") or "", 1000)
        elif decision == "unclear":
            ET.SubElement(case, "skipped", {"message": "it may be slower: the measurements are too few to tell"})
        yield case
    if replay := reading.dig(model, "replay"):
        case = ET.Element("testcase", {"classname": "replay", "name": "the load as it was"})
        words = fmt.line(" ".join(reading.strings(replay, "sentences")), 1000)
        if replay.get("is_worse"):
            ET.SubElement(case, "failure", {"message": words, "type": "slower"})
        yield case
    for row in reading.entries(model, "left_out"):
        case = ET.Element("testcase", {"classname": "statement", "name": fmt.line(row.get("text") or "", 200)})
        ET.SubElement(case, "skipped", {"message": fmt.line(row.get("reason") or "", 1000)})
        yield case


def _cases(model: reading.Analysis) -> Iterator[ET.Element]:
    if model["kind"] == "rehearsal":
        yield from _rehearsal_cases(model)
        return
    verdict = reading.dig(model, "verdict") or {}
    headline = fmt.line(verdict.get("headline") or "", 1000)
    sentences = "\n".join(reading.strings(model, "verdict", "sentences"))
    yield _case("verdict", "verdict", verdict.get("decision"), headline, sentences)
    for gate in reading.entries(model, "gates"):
        case = ET.Element(
            "testcase", {"classname": "gate", "name": fmt.line(gate.get("name") or gate.get("code"), 200)}
        )
        text = fmt.line(gate.get("text") or "", 1000)
        if gate.get("ok") is False and gate.get("code") in WITHHOLDING:
            ET.SubElement(case, "failure", {"message": text}).text = fmt.line(gate.get("next") or "", 1000)
        elif gate.get("ok") is not True:
            ET.SubElement(case, "skipped", {"message": text})
        yield case
    names = reading.arm_names(model)
    for row in reading.entries(model, "metrics"):
        arm, base = (reading.arm_name(names, row.get(key)) for key in ("arm", "baseline"))
        words = fmt.line(row.get("words") or "", 1000)
        yield _case(f"{arm} against {base}", fmt.line(row.get("label") or ""), row.get("decision"), words, "")


def _case(classname: str, name: str, decision: Any, message: str, more: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": fmt.line(classname, 200), "name": name})
    word = decision_named(decision).word
    if decision in _BAD:
        ET.SubElement(case, "failure", {"message": f"{word}: {message}", "type": str(decision)}).text = more
    elif decision in _UNKNOWN:
        ET.SubElement(case, "skipped", {"message": f"{word}: {message}"})
    else:
        ET.SubElement(case, "system-out").text = f"{word}: {message}\n{more}".strip()
    return case
