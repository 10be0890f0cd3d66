"""Builder of the page about a campaign of power cuts: commits acknowledged, found, lost and damaged, cut by cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.page import Head, Page, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis

SHOWN = 20
"""Maximum number of listed commits; the others are counted."""
CUTS = (
    "cut:count in_recovery:text:once_more:100 after_changes:count:changes:90 acknowledged:count found:count"
    " lost:text doubled:text:twice:110 ghosts:text::110 damaged:text::110 corrupt:text repaired:text::140 recovery:span"
    " log_bytes:bytes:log pages:count:pages_not_synced:120 pages_lost:count:pages_lost:120"
    " pages_torn:count:pages_torn:120 names_undone:count:names_undone:130"
)


def page(model: Analysis) -> Page:
    """Return the page about a campaign."""
    failed = reading.dig(model, "failed") or []
    head = Head(
        "Power cuts",
        fmt.line(str(model.get("title") or "")),
        "verdict",
        word="not survived" if failed else "survived",
        tone="bad" if failed else "good",
        headline=fmt.line(str(model.get("headline") or "")),
        next=f"dbdyno device cut PLAN --seed {model.get('seed')} --only {failed[0]} replays the first failed cut"
        if failed
        else "",
        chips=tuple(_chips(model)),
        section="Verdict",
    )
    sections = (_sums(model), *_shrunk(model), *_recoveries(model), _cuts(model), _faults(model))
    return Page(head, sections, data=lambda: _data(model))


def _chips(model: Analysis) -> Iterator[str]:
    plan = reading.dig(model, "plan") or {}
    yield fmt.line(f"{plan.get('engine') or ''} {model.get('version') or ''}".strip())
    for name, value in (plan.get("settings") or {}).items():
        yield fmt.line(f"{name} = {value}")
    for fault in plan.get("fail") or ():
        yield fmt.line(str(fault))
    yield f"seed {model.get('seed')}"


def _sums(model: Analysis) -> Section:
    sums = reading.dig(model, "sums") or {}
    facts = (
        (
            "power cuts",
            f"{fmt.count(sums.get('cuts') or 0)}, {fmt.count(sums.get('in_recovery') or 0)} with a second cut "
            "during recovery",
        ),
        ("acknowledged commits", fmt.count(sums.get("acknowledged") or 0)),
        ("lost", _loss_text(sums)),
        ("databases corrupt", fmt.count(sums.get("corrupt") or 0)),
        ("recovery", f"median {_seconds(sums.get('recovery_p50_s'))}, longest {_seconds(sums.get('recovery_max_s'))}"),
        *((("repaired before a start", fmt.count(sums["repaired"])),) if sums.get("repaired") else ()),
        (
            "pages not synced at the cuts",
            f"{fmt.count(sums.get('pages') or 0)}: {fmt.count(sums.get('pages_lost') or 0)} lost,"
            f" {fmt.count(sums.get('pages_torn') or 0)} torn",
        ),
        *(
            (("pages that a rebuild of the array damaged", fmt.count(sums["pages_rebuilt"])),)
            if sums.get("pages_rebuilt")
            else ()
        ),
    )
    return Section("cuts_sums", "In all", facts=facts)


def _loss_text(sums: JsonObject) -> str:
    if not sums.get("lost"):
        return "none"
    age = fmt.count(round(sums.get("oldest_lost_ms") or 0))
    return f"{fmt.count(sums['lost'])}, the oldest acknowledged {age} ms before its cut"


def _seconds(value: Any) -> str:
    return f"{value or 0:.3g} s"


def _shrunk(model: Analysis) -> Iterator[Section]:
    """Yield the smallest plan that reproduces a failing cut."""
    found = reading.dig(model, "shrunk")
    if not found:
        return
    repeats = int(found.get("repeats") or 0)
    about = (
        f"Cut {found.get('cut')} reduced to its smallest form in {fmt.count(found.get('tries') or 0)} tries: the power"
        f" fails after {common.with_noun(int(found.get('after_changes') or 0), 'change')} of files. Of {repeats} more"
        f" {'try' if repeats == 1 else 'tries'} of this plan {found.get('failures')} failed."
    )
    step = f"dbdyno device cut ./FILE.toml --seed {model.get('seed')} --only {found.get('cut')} replays it"
    text = fmt.text(str(found.get("plan") or ""))
    yield Section("cuts_shrunk", "The smallest cut that fails", about, text=text, text_title="The plan", notes=(step,))


def _recoveries(model: Analysis) -> Iterator[Section]:
    """Yield a section with recovery times, by the amount of log that each recovery read."""
    given = reading.entries(model, "recoveries")
    if not given:
        return
    rows = [Row({**entry, "p50": entry.get("p50_s"), "max": entry.get("max_s")}) for entry in given]
    shown = columns("log_bytes:bytes:log,_up_to cuts:count p50:span:recovery,_median max:span:longest")
    about = (
        "Recoveries grouped by the size of the log that the engine read. The time runs from the start of the engine"
        " until every row was read and checked."
    )
    table = common.table("", shown, rows, look="slim")
    yield Section("cuts_recoveries", "Recovery time by size of the log", about, tables=(table,))


def _cuts(model: Analysis) -> Section:
    rows = []
    for entry in reading.entries(model, "cuts"):
        lists = {key: _numbers(entry.get(key)) for key in ("lost", "doubled", "ghosts", "damaged")}
        bad = any(entry.get(key) for key in ("lost", "doubled", "ghosts", "damaged", "halves", "corrupt"))
        corrupt = entry.get("corrupt") or ("half a transaction" if entry.get("halves") else "")
        cells = {
            **entry,
            **lists,
            "in_recovery": "yes" if entry.get("in_recovery") else "",
            "corrupt": fmt.line(str(corrupt)),
            "recovery": entry.get("recovery_s"),
        }
        rows.append(Row(cells, tone="bad" if bad else ""))
    about = (
        "Commits are counted since their database was created. A new one is created after some cuts, and after a "
        "cut that was"
        " not survived. A commit that was tried but not acknowledged can be there or not."
    )
    return Section("cuts", "Cut by cut", about, tables=(common.table("", columns(CUTS), rows, most=SHOWN),))


def _numbers(found: Any) -> str:
    numbers = list(found or ())
    more = f" and {len(numbers) - SHOWN:,} more" if len(numbers) > SHOWN else ""
    return ", ".join(map(str, numbers[:SHOWN])) + more


def _by_cut(model: Analysis, failed: set[Any]) -> list[Any]:
    """Return the faults in the order of cuts, but with those of failed cuts first."""
    return sorted(reading.entries(model, "faults"), key=lambda entry: entry.get("cut") not in failed)


def _faults(model: Analysis) -> Section:
    failed = set(reading.dig(model, "failed") or [])
    rows = [
        Row({**entry, "at_us": (entry.get("at_ns") or 0) / 1e3}, tone="bad" if entry.get("cut") in failed else "")
        for entry in _by_cut(model, failed)
    ]
    shown = columns(
        "cut:count kind:text operation:text file:text offset_bytes:bytes:offset bytes:bytes:length at_us:time:time"
    )
    about = (
        "Each page that a cut lost or tore, each name that it undid, and each fault that the plan asked for; cuts "
        "that were not survived come first."
        if rows
        else "Nothing was lost at a cut, and the plan requested no device fault."
    )
    return Section("cuts_faults", "Faults", about, tables=(common.table("", shown, rows, most=SHOWN),) if rows else ())


def _data(model: Analysis) -> Table:
    return common.flat_table(reading.entries(model, "cuts"))
