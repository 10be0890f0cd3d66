"""Reader of hyperfine's JSON (`--export-json`): every command is an arm, each of its executions an operation."""

from __future__ import annotations

from collections import Counter

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.imports.contents import NS, Contents, TimedOperations, finite
from dbdyno.imports.readers.json_text import has_keys, json_object, parse_json


def matches(head: str) -> bool:
    """Return True if the text begins like hyperfine's JSON."""
    return has_keys(head, "results", "command")


def read(text: str, where: str) -> Contents:
    """Return the executions of each command.

    Raises:
        EvidenceError: The text is not such JSON, or comes from a version that does not write the time of each
            execution.
    """
    results = json_object(parse_json(text, where), "the file", where).get("results")
    if not isinstance(results, list) or not results:
        raise EvidenceError(
            "has no list of results", where=where, next_step="export the result again with --export-json"
        )
    arms = [_arm(json_object(row, f"result {at}", where), f"{where}: result {at}") for at, row in enumerate(results)]
    repeated = [name for name, count in Counter(arm.arm for arm in arms).items() if count > 1]
    if repeated:
        raise EvidenceError(
            f"has two results of {repeated[0]!r}", where=where, next_step="name the commands with --command-name"
        )
    return Contents("hyperfine", benchmark="commands", timed=arms)


def _arm(row: JsonObject, where: str) -> TimedOperations:
    times, codes = row.get("times"), row.get("exit_codes")
    if not isinstance(times, list) or not times:
        raise EvidenceError(
            "has no times of the individual executions", where=where, next_step="use hyperfine 1.10 or newer"
        )
    if not isinstance(codes, list) or len(codes) != len(times):
        codes = [0] * len(times)
    arm, at_ns = TimedOperations(str(row.get("command") or "")[:60] or "command", in_turn=True), 0
    for time, code in zip(times, codes, strict=True):
        elapsed_ns = round(finite(time, "a time", where) * NS["s"])
        try:
            arm.add(at_ns, elapsed_ns, statement="command", error=_error(code))
        except ValueError as error:
            raise EvidenceError(str(error), where=where) from error
        at_ns += elapsed_ns
    return arm


def _error(code: object) -> str | None:
    """Return an exit code as five characters, as in a run of commands: `X0001` is exit 1, `SIGNL` a signal."""
    if code is None:
        return "SIGNL"
    return None if code == 0 else f"X{code:04d}" if isinstance(code, int) and 0 < code < 10_000 else "X????"
