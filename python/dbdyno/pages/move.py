"""Builder of the page about a move: result and proof, cost to the source, progress over time, rejected rows."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Finding, Head, Page, Row, Section, Table, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import TONES, columns
from dbdyno.pages.reading import Analysis, Entry

COUNTERS = (
    "blocks_fetched:count:blocks_read missed:count:not_in_buffers storage_bytes:bytes:from_storage"
    " rows_read:count:rows_its_handlers_read bytes_sent:bytes:sent log_bytes:bytes:log"
    " temp_writes:count:temporary_writes cpu_ns:ns:CPU"
)
SUMMED = (
    "chunks",
    "rows",
    "bytes",
    "busy_ns",
    "blocks_fetched",
    "missed",
    "storage_bytes",
    "rows_read",
    "bytes_sent",
    "log_bytes",
    "temp_writes",
    "cpu_ns",
)
_WAITS_MOST = 3


def page(model: Analysis) -> Page:
    """Return the page about a move."""
    job, totals = reading.dig(model, "job") or {}, reading.dig(model, "totals") or {}
    tables = reading.entries(model, "tables")
    first = fmt.line(tables[0].get("table") or "") if tables else ""
    rejected = fmt.number(reading.dig(model, "rejects", "count"))
    head = Head(
        "Move",
        first if len(tables) == 1 else f"{len(tables)} tables",
        "verdict",
        question=f"{fmt.line(job.get('source') or '')} → {fmt.line(job.get('target') or '')}",
        word=fmt.line(reading.dig(model, "verdict", "word") or ""),
        tone=TONES.get(str(reading.dig(model, "verdict", "tone")), "even"),
        headline=fmt.line(reading.dig(model, "verdict", "headline") or "", 300),
        sentences=tuple(_rate(totals)),
        chips=tuple(_chips(model, job)),
        alerts=((common.with_noun(rejected, "rejected row"), "rejects"),) if rejected else (),
        section="Verdict",
    )
    sections = (
        _proof_section(model),
        _cost(model),
        _over_time(model),
        _tables(tables),
        _rejects(model),
        _about_section(job),
    )
    return Page(head, sections, data=lambda: common.flat_table(reading.entries(model, "chunks")))


def _rate(totals: Entry) -> Iterator[str]:
    names = ("bytes", "reading_ns", "bytes_per_s", "file_bytes", "elapsed_ns")
    size, reading, rate, filed, spent = (fmt.number(totals.get(name)) for name in names)
    if not size or not reading or not rate or not spent:
        return
    became = f"; {fmt.size(filed)} in files" if filed else ""
    yield f"{fmt.size(size)} of rows, read in {fmt.duration(reading)}: {fmt.size(rate)} per second{became}."
    yield f"{fmt.duration(spent)} of work in total."


def _chips(model: Analysis, job: Entry) -> Iterator[str]:
    yield f"job {fmt.line(job.get('id') or '')}"
    if job.get("mode"):
        yield fmt.line(job["mode"])
    attempts = reading.entries(model, "attempts")
    if attempts:
        yield common.with_noun(attempts[-1].get("workers"), "worker")
        yield f"{fmt.size(attempts[-1].get('memory_bytes'))} of memory"
    if len(attempts) > 1:
        yield f"{len(attempts)} attempts"


def _proof_section(model: Analysis) -> Section:
    found = []
    for line in reading.strings(model, "proved"):
        bad = line.startswith(("DIFFERS", "NOT "))
        tone: Tone = "bad" if bad else "good" if line.startswith("Proved") else "even"
        if not line.startswith("Cost to the source"):
            found.append(Finding(fmt.line(line, 600), tone))
    return Section("proved", "What was proved", findings=tuple(found))


def _cost(model: Analysis) -> Section:
    """Return the cost for the source by session and in total; counters that are empty in all sessions are left out."""
    several = len(reading.entries(model, "attempts")) > 1
    sessions = [_session(one, several=several) for one in reading.entries(model, "sessions")]
    if not sessions:
        return Section("cost", "Cost to the source")
    whole = {name: _sum(sessions, name) for name in SUMMED}
    shown = columns("name:text:session chunks rows bytes:bytes busy_ns:ns:at_work")
    shown += tuple(one for one in columns(COUNTERS) if whole[one.name] is not None)
    shown += columns("waits:text:most_often_seen") if any(one["waits"] for one in sessions) else ()
    rows = [Row(one) for one in sessions]
    if len(rows) > 1:
        rows.append(Row({"name": "all", **whole, "waits": ""}, style="sum"))
    waits = [
        Row({"event": fmt.line(one.get("event")), "bar": Cell(one.get("share")), **_wait_row(one)})
        for one in reading.entries(model, "waits")
    ]
    looked = columns("event:text class:text bar:bar:_ share:share looks")
    notes = (
        "Blocks are exact: the server counts them. CPU and storage are those of its processes, if the server is"
        " on the machine that moved the rows. Waits are looks, about five per second, not durations. A figure without a"
        " column is not counted per session by this server (log and temporary writes: PostgreSQL 18 or later).",
    )
    tables = [Table("", shown, tuple(rows))]
    if waits:
        tables.append(Table("Waits of its sessions", looked, tuple(waits)))
    return Section("cost", "Cost to the source", tables=tuple(tables), notes=notes)


def _wait_row(entry: Entry) -> TableRow:
    return {"class": fmt.line(entry.get("class") or ""), "share": entry.get("share"), "looks": entry.get("looks")}


def _session(entry: Entry, *, several: bool) -> TableRow:
    at = f"attempt {entry.get('attempt')}, " if several else ""
    waits = entry.get("waits") or {}
    whole = sum(waits.values()) or 1
    fetched, hit = entry.get("blocks_fetched"), entry.get("blocks_hit")
    most = [f"{fmt.line(name)} {fmt.share(count / whole)}" for name, count in list(waits.items())[:_WAITS_MOST]]
    return {
        **{name: entry.get(name) for name in SUMMED},
        "name": f"{at}worker {int(entry.get('worker') or 0) + 1}, process {entry.get('process')}",
        "missed": None if fetched is None or hit is None else fetched - hit,
        "waits": ", ".join(most),
    }


def _sum(sessions: list[TableRow], name: str) -> int | None:
    known = [one[name] for one in sessions if one[name] is not None]
    return sum(known) if known else None


def _over_time(model: Analysis) -> Section:
    """Return the drawing of chunks over time, and each attempt with its phases."""
    rows = []
    for place, one in enumerate(reading.entries(model, "attempts"), 1):
        ending = fmt.line(one.get("ending") or "", 200)
        began, ended = one.get("began_ns") or 0, one.get("ended_ns") or 0
        phases = [
            f"{fmt.line(phase.get('name'))} {fmt.duration(phase.get('ended_ns', 0) - phase.get('began_ns', 0))}"
            for phase in one.get("phases") or []
        ]
        cells = {
            "place": place,
            "how": fmt.line(one.get("how") or ""),
            "began": began / 1e3,
            "spent": ended - began if one.get("heard") else None,
            "phases": ", ".join(phases),
            "chunks": one.get("chunks"),
            "rows": one.get("rows"),
            "ending": Cell(ending, tone="good" if ending == "done" else "even" if ending == "at work" else "bad"),
        }
        rows.append(Row(cells))
    shown = columns(
        "place:count:attempt how:text:_ began:time:began_(UTC) spent:ns:took phases:text chunks rows ending:text:end"
    )
    drawn = common.figures(model, "move_chunks")
    table = (Table("Attempts", shown, tuple(rows)),) if rows else ()
    return Section("over_time", "How it went", tables=table, figures=drawn)


def _tables(tables: list[TableRow]) -> Section:
    if len(tables) < 2:
        return Section("tables", "Tables")
    shown = columns("table:text kind:text chunks chunks_in_all:count:of rows bytes:bytes file_bytes:bytes:in_files")
    rows = [
        Row({**one, "table": fmt.line(one.get("table") or ""), "kind": fmt.line(one.get("kind") or "")})
        for one in tables
    ]
    return Section("tables", "Tables", tables=(Table("", shown, tuple(rows)),))


def _rejects(model: Analysis) -> Section:
    given = reading.dig(model, "rejects")
    if not given:
        return Section("rejects", "Rejected rows")
    path, count = fmt.line(given.get("path") or "", 300), given.get("count") or 0
    if not count:
        gone = "" if given.get("there") else "; the file is written only if there are rejects"
        return Section("rejects", "Rejected rows", sentences=(f"None. They would be in {path}{gone}.",))
    shown = columns("file:text:chunk row reason:text code:code:SQLSTATE")
    rows = tuple(
        Row({**one, "file": fmt.line(one.get("file") or ""), "reason": fmt.line(one.get("reason") or "", 200)})
        for one in reading.entries(given, "rows")
    )
    table = Table("", shown, rows, left_out=count - len(rows))
    return Section("rejects", "Rejected rows", f"All rejected rows, with their values: {path}", tables=(table,))


def _about_section(job: Entry) -> Section:
    """Return a section that says where the job's files are, and how to stop the job from the database."""
    facts = [("job", job.get("id")), ("ledger", job.get("folder")), ("source", job.get("source"))]
    facts += [("target", job.get("target")), ("mode", job.get("mode"))]
    facts += [("how to stop it from the database", job.get("stop"))]
    told = tuple((name, fmt.line(str(value), 300)) for name, value in facts if value)
    return Section("about", "About this job", facts=told)
