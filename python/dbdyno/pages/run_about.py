"""Sections that describe a run: arms, errors, statements, textbook tests, method, engine, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import arm, columns
from dbdyno.pages.reading import Analysis, Entry

ARMS_TITLE = "Over all operations (per second: the mean of the blocks)"
"""Title of the arms' table, whose figures are over all operations, while the metrics are means of block values."""
ERRORS_SHOWN, STATEMENTS_SHOWN = 20, 60
_ARM_COLUMNS = (
    "sessions:count:sessions:page ops:count:operations:75 errors:count:errors:64 throughput_per_s:number4:per_second"
    " mean_ns:ns:mean:100 sd_ns:ns:std_dev:page p50:ns p90:ns:p90:112 p99:ns p99.9:ns:p99.9:88"
    " max_ns:ns:slowest:124"
)


def arms(model: Analysis) -> Iterator[Section]:
    """Yield the table of arms with their changes and figures; a column without any value is left out."""
    given = reading.entries(model, "arms")
    if not given:
        return
    rows = [_arm(model, one, at, several=len(given) > 1) for at, one in enumerate(given)]
    shown = [one for one in columns(_ARM_COLUMNS) if any(row[one.name] is not None for row in rows)]
    table = common.table(ARMS_TITLE, (Column("arm", "arm", narrowest=15), *shown), rows)
    yield Section("arms", "The arms", tables=(table,))


def _arm(model: Analysis, given: dict[str, object], at: int, *, several: bool) -> dict[str, object]:
    changes = [f"{fmt.line(name)} = {fmt.line(value)}" for name, value in (reading.dig(given, "changes") or {}).items()]
    about = fmt.line(given.get("description") or "")
    name = arm(
        model,
        given.get("index", at),
        notes=(*([about] if about else []), *changes, *_notes(given)),
        tag="baseline" if given.get("baseline") and several else "",
    )
    quantiles = reading.dig(given, "quantiles_ns") or {}
    numbers = ("sessions", "ops", "errors", "throughput_per_s", "mean_ns", "sd_ns", "max_ns")
    found = {key: given.get(key) for key in numbers} | {key: quantiles.get(key) for key in _QUANTILES}
    return {"arm": name, **{key: fmt.number(value) for key, value in found.items()}}


_QUANTILES = ("p50", "p90", "p99", "p99.9")


def _notes(given: dict[str, object]) -> list[str]:
    """Return the notes on an arm: errors by code, retries, skipped arrivals."""
    codes = reading.dig(given, "error_codes") or {}
    found = [f"{fmt.count(number)} × error {fmt.line(code)}" for code, number in codes.items()]
    expected = reading.dig(given, "expected_codes") or {}
    found += [f"{fmt.count(number)} × expected {fmt.line(code)}" for code, number in expected.items()]
    if fmt.number(given.get("retries")):
        found.append(f"{fmt.count(given['retries'])} retries")
    if fmt.number(given.get("skipped")):
        found.append(f"{fmt.count(given['skipped'])} arrivals skipped")
    return found


def errors(model: Analysis) -> Iterator[Section]:
    """Yield the failed statements by arm, statement and SQLSTATE, most frequent first; expected errors separately."""
    given = reading.entries(model, "errors")
    failed = [row for row in given if not row.get("expected")]
    about = (
        "Failed statements do not count in latency or throughput. For a script with several commands, the table "
        "shows the command that failed."
    )
    if failed:
        yield _errors(model, "errors", "Errors", about, failed)
    expected = [row for row in given if row.get("expected")]
    about = "The plan declares these failures as outcomes: they count in latency and throughput, and in no error gate."
    if expected:
        yield _errors(model, "expected-errors", "Expected errors", about, expected)


def _errors(model: Analysis, place: str, title: str, about: str, given: list[dict[str, object]]) -> Section:
    rows = [
        {
            "arm": arm(model, row.get("arm"), notes=(fmt.line(row["message"]),) if row.get("message") else ()),
            "statement": Cell(fmt.line(row.get("statement") or "", longest=80), "code"),
            "code": f"{fmt.line(row.get('sqlstate') or '')} {fmt.line(row.get('meaning') or '')}".strip(),
            "vendor": f"{row.get('vendor_code') or ''} {fmt.line(row.get('condition') or '')}".strip(),
            "error_class": fmt.line(row.get("error_class") or ""),
            "failed": row.get("failed"),
            "tried": row.get("tried"),
            "share": _share(row.get("failed"), row.get("tried")),
        }
        for row in given[:ERRORS_SHOWN]
    ]
    counted = "failed:count" if place == "errors" else "failed:count:ended_so"
    numbers = "vendor:text:number " if any(row.get("vendor_code") for row in given) else ""
    shown = columns(
        f"arm:text statement:text code:text:SQLSTATE {numbers}error_class:text:class:page {counted} tried:count:of"
        " share:percent"
    )
    left = max(len(given) - ERRORS_SHOWN, 0)
    return Section(place, title, about, tables=(common.table("", shown, rows, left_out=left, look="slim"),))


def _share(failed: object, tried: object) -> float | None:
    part, whole = fmt.number(failed), fmt.number(tried)
    return part / whole if part is not None and whole else None


def correlation(model: Analysis) -> Iterator[Section]:
    """Yield the correlations of a call's time with the properties of statements, for a correlation study."""
    found = reading.dig(model, "correlation")
    if not found:
        return
    rows = [{**row, "x": fmt.line(row.get("x")), "interval": _interval(row)} for row in reading.entries(found, "rows")]
    shown = columns(
        "x:text:mean_time_of_a_call_against n:count:statements spearman:number2:Spearman q:p:p,_adjusted"
        " pearson:number2:Pearson interval:words:95_%:64 pearson_log10_p:log10_p:p:page"
    )
    statements = reading.entries(found, "statements")
    texts = [
        {**row, "text": fmt.text(row.get("text") or row.get("statement") or "")}
        for row in statements[:STATEMENTS_SHOWN]
    ]
    of_each = columns("calls:count mean_ns:ns:mean_time hit_ratio:percent:hit_ratio blocks:number3:blocks_a_call")
    left = max(len(statements) - STATEMENTS_SHOWN, 0)
    sql = Column("text", "statement", "code", narrowest=24)
    yield Section(
        "correlation",
        "Correlations",
        fmt.line(found.get("assumption") or ""),
        tables=(
            common.table("", shown, rows),
            common.table("Statements", (sql, *of_each), texts, left_out=left, where="page"),
        ),
    )


def _interval(row: Entry) -> str:
    return f"{fmt.significant(row.get('low'), 2)} to {fmt.significant(row.get('high'), 2)}"


def classical(model: Analysis) -> Iterator[Section]:
    """Yield the textbook tests over all single waits, with their assumptions."""
    rows = [
        {
            "test": fmt.line(test.get("test") or ""),
            "arms": Cell(
                arm(model, test.get("arm")).value,
                series=arm(model, test.get("arm")).series,
                notes=(f"against {arm(model, test.get('baseline')).value}",),
            ),
            "statistic": test.get("statistic"),
            "df": test.get("df"),
            "p": test.get("log10_p"),
            "effect": fmt.line(test.get("effect") or ""),
            "note": fmt.line(test.get("note") or ""),
        }
        for test in reading.entries(model, "classical")
    ]
    if not rows:
        return
    shown = columns(
        "test:text arms:text statistic:number3 df:count p:log10_p effect:text note:text:assumption",
    )
    about = (
        "These tests assume independent waits, but waits depend on each other. So the tests report “different” far "
        "too often. The verdict does not use them."
    )
    table = common.table("", shown, rows, look="loose")
    yield Section("classical", "Classical tests, for comparison", about, tables=(table,), where="page")


def statements(model: Analysis) -> Iterator[Section]:
    """Yield the times of single statements in each arm, if there is more than one statement."""
    given = reading.entries(model, "statements")
    if len(given) < 2:
        return
    rows = [row for statement in given for row in _statement(model, statement)]
    shown = columns("arm:text ops:count:calls mean_ns:ns:mean p50_ns:ns:p50 p99_ns:ns:p99")
    sql = Column("text", "statement", "code", narrowest=24)
    yield Section("statements", "Statements", tables=(Table("", (sql, *shown), tuple(rows)),), where="page")


def _statement(model: Analysis, statement: dict[str, object]) -> Iterator[Row]:
    """Yield a row per arm; the first row contains the text of the statement."""
    kind = fmt.line(statement.get("kind") or "")
    text: Any = Cell(fmt.text(statement.get("statement") or ""), notes=(kind,) if kind else ())
    for one in reading.entries(statement, "arms") or [{}]:
        cells: TableRow = {**one, "text": text}
        yield Row({**cells, "arm": arm(model, one.get("arm"))} if one else {"text": text}, style="" if one else "dim")
        text = ""


def method(model: Analysis) -> Iterator[Section]:
    """Yield how the run was measured, and the overhead of sampling."""
    sentences = reading.strings(model, "method", "sentences")
    overhead = reading.dig(model, "method", "overhead")
    watching = ""
    if overhead:
        watching = fmt.line(reading.dig(overhead, "text") or "")
        if reading.dig(overhead, "ratio") is not None:
            ends = fmt.interval(reading.dig(overhead, "low"), reading.dig(overhead, "high"))
            within = f" ({ends})" if ends != fmt.NONE else ""
            watching = f"{watching} Measured: {fmt.change(reading.dig(overhead, 'ratio'))}{within}.".strip()
    told = (*sentences, *([f"Cost of watching. {watching}"] if watching else []))
    if told:
        yield Section("method", "Method", sentences=told, where="page")


def engine(model: Analysis) -> Iterator[Section]:
    """Yield facts and settings of the engine."""
    facts = reading.dig(model, "engine", "facts") or {}
    settings = reading.entries(model, "engine", "settings")
    if not facts and not settings:
        return
    rows = [
        {key: fmt.line("" if row.get(key) is None else row[key]) for key in ("name", "value", "source")}
        for row in settings
    ]
    shown = (
        Column("name", "setting", "code"),
        Column("value", "value", "code"),
        Column("source", "source"),
    )
    folded = f"Settings ({len(rows)})"
    table = common.table("", shown, rows, look="loose", folded=folded)
    yield Section(
        "engine",
        "Engine",
        facts=tuple(_fact(str(name), fact) for name, fact in facts.items()),
        tables=(table,) if rows else (),
        where="page",
    )


def _fact(name: str, fact: object) -> tuple[str, str]:
    """Return a readable name and value of a fact: `host memory` `23.5 GiB`, `in recovery` `no`."""
    if name.endswith("_bytes") and fmt.number(fact) is not None:
        return fmt.line(name.removesuffix("_bytes").replace("_", " ")), fmt.size(fact)
    words = {None: "–", True: "yes", False: "no"}.get(fact, fact) if fact is None or isinstance(fact, bool) else fact
    return fmt.line(name.replace("_", " ")), fmt.line(words)


def run(model: Analysis) -> Iterator[Section]:
    """Yield what is needed to repeat the run: seed, order, plan, identity."""
    given = reading.dig(model, "run") or {}
    facts = tuple((name, words) for name, words in _facts(given) if words)
    plan = fmt.text(given.get("plan_toml") or "")
    if facts or plan:
        yield Section("run", "Run it again", facts=facts, text=plan, text_title="The plan", where="page")


def _facts(run: dict[str, object]) -> list[tuple[str, str]]:
    def given(key: str) -> str:
        return "" if run.get(key) is None else fmt.line(run[key])

    whole, planned = run.get("blocks_whole"), run.get("blocks_planned")
    blocks = f"{fmt.count(whole)} complete, {fmt.count(planned)} planned" if whole is not None else ""
    if blocks and run.get("warmup_blocks") is not None:
        blocks += f", {fmt.count(run['warmup_blocks'])} for warm-up"
    switch = given("switch")
    if switch and run.get("slice_ms") is not None:
        switch += f" of {fmt.line(run['slice_ms'])}{fmt.THIN}ms"
    return [
        ("run", given("id")),
        ("status", given("status")),
        ("seed", given("seed")),
        ("started", fmt.moment(run.get("started_at")) if run.get("started_at") else ""),
        ("took", fmt.span(run.get("duration_s")) if run.get("duration_s") is not None else ""),
        ("blocks", blocks),
        ("switch between arms", switch),
        ("order", given("order")),
        ("dbdyno", given("tool_version")),
    ]
