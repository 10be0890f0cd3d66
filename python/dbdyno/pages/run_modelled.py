"""Sections that only some runs have: the paths of a log, races of disk and flash, databases, devices of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Section
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import arm, columns
from dbdyno.pages.reading import Analysis, Entry

STATIONS_PRINTED = 18


def sections(model: Analysis) -> Iterator[Section]:
    """Yield race, databases, devices, modelled devices below engines, resources and operational laws."""
    yield from race(model)
    yield from databases(model)
    yield from devices(model)
    yield from volumes(model)
    yield from resources(model)
    yield from laws(model)


def _interval(row: Entry) -> str:
    """Return an interval of shares in per cent."""
    if fmt.number(row.get("low")) is None or fmt.number(row.get("high")) is None:
        return fmt.NONE
    return f"{fmt.percent(row['low'], 3)} to {fmt.percent(row['high'], 3)}"


def race(model: Analysis) -> Iterator[Section]:
    """Yield how many log writes were faster on disk and on flash, and how many outliers flash prevented."""
    given = reading.entries(model, "race")
    if not given:
        return
    rows = [_race(model, row) for row in given]
    timed = any(row.get("request_ns") is not None for row in given)
    passed = any(row.get("passed") for row in given)
    shown = columns(
        "arm:text races:count disk_first:count:disk_first flash_first:count:flash_first share:ratio:share_of_flash"
        " interval:words prevented:count:outliers_prevented:98 outliers:count:both_slow:page"
        " flash_outliers:count:flash_alone_slow:page"
        + (" served_ns:ns:a_write_that_raced:page request_ns:ns:any_redo_write:page" if timed else "")
        + (" passed:text:bypassed_the_flash_log:page" if passed else "")
    )
    on_host = bool(reading.entries(model, "logs"))
    counted = (
        "The disk is the first path, the flash the second; a path's time is that of its device"
        if on_host
        else "The cells count each copy of a mirrored write separately"
    )
    about = (
        "Each redo write goes to disk and flash at once and ends when the first copy is durable. An outlier is a copy "
        "slower than the threshold; it is prevented if the other copy was within the threshold. "
        f"{counted}; the interval ({_level(given)}) is over blocks."
    )
    table = common.table("", shown, rows, look="slim")
    yield Section("race", "Disk or flash first", about, tables=(table,))


def _race(model: Analysis, row: Mapping[str, Any]) -> dict[str, object]:
    passed = tuple(f"{fmt.line(why)} {fmt.count(n)}" for why, n in (row.get("passed") or {}).items())
    return {**row, "arm": arm(model, row.get("arm")), "interval": _interval(row), "passed": Cell("", notes=passed)}


def _level(given: list[dict[str, object]]) -> str:
    return fmt.percent(given[0].get("level"), 3, trim=True)


def databases(model: Analysis) -> Iterator[Section]:
    """Yield each database's share of storage that several databases use."""
    given = reading.entries(model, "databases")
    if not given:
        return
    rows = [
        {
            **row,
            "arm": arm(model, row.get("arm")),
            "database": fmt.line(row.get("database") or "?"),
            "interval": _interval(row),
        }
        for row in given
    ]
    shown = columns(
        "arm:text database:left transactions_per_s:number4:transactions/s disk_per_s:number4:disk_I/O/s"
        " share:ratio:share_of_disks interval:words wait_ns:ns:waiting:98 flash_per_s:number4:flash_I/O/s:page"
    )
    about = (
        "Several databases share this storage. The cells count while all sessions of all databases work: from the end "
        "of the warm-up until the first session of the studied database ends. Each copy of a mirrored write counts "
        f"separately. The share is that of the disks' I/Os; its interval ({_level(given)}) is over blocks. Waiting is "
        "the time before resource management sends an I/O to the disk."
    )
    table = common.table("", shown, rows, look="slim")
    yield Section("databases", "Databases side by side", about, tables=(table,))


def resources(model: Analysis) -> Iterator[Section]:
    """Yield the resources that a transaction of each arm used."""
    given = reading.entries(model, "resources")
    if not given:
        return
    rows = [{**row, "arm": arm(model, row.get("arm"))} for row in given]
    calls = " read_calls:number3:reads write_calls:number3:writes"
    calls += " read_bytes:bytes:from_storage write_bytes:bytes:to_storage"
    has_calls = any(row.get("read_calls") is not None for row in given)
    log = " log_bytes:bytes:log" if any(row.get("log_bytes") is not None for row in given) else ""
    shown = columns("arm:text user_ns:ns:CPU,_user system_ns:ns:CPU,_system" + log + (calls if has_calls else ""))
    tables = [common.table("", shown, rows, look="slim")]
    if any(row.get("blocks") is not None for row in given):
        counted = columns("arm:text blocks:number3 blocks_read:number3:not_in_shared_buffers temp_blocks:number3")
        tables.append(common.table("Blocks", counted, rows, look="slim"))
    if any(row.get("kept_statements") is not None for row in given):
        kept = columns("arm:text kept_statements:number:statements kept_bytes:bytes:memory session_bytes:bytes:session")
        tables.append(common.table("Kept by a session", kept, rows, look="slim"))
    about = "A transaction's share of what its programs used, or the server's processes for its sessions."
    if any(row.get("write_bytes") for row in given):
        about += " Bytes to the storage are as Linux counts them: for a file cached in large folios, the whole folio."
    yield Section("resources", "Used by a transaction", about, tables=tuple(tables))


def laws(model: Analysis) -> Iterator[Section]:
    """Yield the operational laws of a run: each relates two figures that must agree."""
    given = reading.entries(model, "laws")
    if not given:
        return
    rows = [
        {
            "law": fmt.line(row.get("law") or ""),
            "arm": fmt.NONE if row.get("arm") is None else arm(model, row.get("arm")),
            **{side: fmt.significant(row.get(side), 4) for side in ("left", "right")},
            "holds": Cell("holds" if row.get("holds") else "broken", tone="" if row.get("holds") else "bad"),
            "sentence": fmt.line(row.get("sentence") or "", 200),
        }
        for row in given
    ]
    shown = columns("law:text arm:text left:words:counted right:words:against holds:text:_ sentence:text:what_it_says")
    about = "Identities that must hold between the counters. If one does not hold, something was not counted."
    tables = (common.table("", shown, rows, look="loose"),)
    yield Section("laws", "Operational laws", about, tables=tables, where="page")


def devices(model: Analysis) -> Iterator[Section]:
    """Yield the stations of a model: utilisation, queue, waiting and service, and whether Little's law holds."""
    given = reading.entries(model, "devices")
    if not given:
        return
    broken = sum(int(fmt.number(row.get("little_broken")) or 0) for row in given)
    looks = sum(int(fmt.number(row.get("looks")) or 0) for row in given)
    several = len(reading.entries(model, "arms")) > 1
    stations = list(dict.fromkeys(row.get("station") for row in given))
    ordered = [row for station in stations for row in given if row.get("station") == station]
    rows = [_device(model, row, several=several) for row in ordered]
    shown = columns(
        f"station:text {'arm:text ' if several else ''}bar:bar:busy_drawn:page busy:percent"
        " busiest:percent:busiest:page queue:number3 present:number3:present:page present_max:count:most:page"
        " per_s:number4:per_second wait_ns:ns:waiting service_ns:ns:service:page sojourn_ns:ns:total_time"
        " wait_max_ns:ns:longest_wait:page"
    )
    about = (
        "Each station of the model over the blocks that count. Waiting is the time before service; queue and present "
        "are mean numbers of requests at one station."
    )
    table = common.table("", shown, rows, most=STATIONS_PRINTED)
    yield Section("devices", "Devices", about, tables=(table,), notes=(_law(broken, looks),))


def compare_arms(model: Analysis) -> Iterator[Section]:
    """Yield the comparison of two runs of one study, arm by arm; each arm is compared with the base of its own run."""
    given = reading.entries(model, "beside")
    if not given:
        return
    first, second = [*reading.arm_names(model).values(), "", ""][:2]
    shown = columns("arm:text mean0:ns:mean,_1 ratio0:words:to_its_base mean1:ns:mean,_2 ratio1:words:to_its_base")
    about = (
        f"The same study ran twice: 1 is {first}, 2 is {second}. Each arm is compared with the base of its own run;"
        " the interval is over its blocks. Ratios are comparable; microseconds only between engines of the same kind."
    )
    table = common.table("", shown, [_sides(row) for row in given], look="slim")
    yield Section("beside", "Both runs, arm by arm", about, tables=(table,))


def _sides(row: Entry) -> TableRow:
    sides = reading.entries(row, "sides")
    names = [fmt.line(side.get("arm") or "") for side in sides]
    cells: TableRow = {"arm": Cell(names[0], notes=() if len(set(names)) == 1 else tuple(names[1:]))}
    for at, side in enumerate(sides):
        ratio, low, high = (fmt.number(side.get(key)) for key in ("ratio", "low", "high"))
        text = "base" if ratio is None else f"{ratio:.3g}"
        if low is not None and high is not None:
            text += f" ({low:.3g} to {high:.3g})"
        notes = (f"to {fmt.line(side['base'])}",) if side.get("base") else ()
        cells |= {f"mean{at}": side.get("mean_ns"), f"ratio{at}": Cell(text, notes=notes)}
    return cells


def volumes(model: Analysis) -> Iterator[Section]:
    """Yield the modelled devices below the engines: contents, kernel cost of a request, lateness of replies."""
    given = reading.entries(model, "volumes")
    if not given:
        return
    names = reading.arm_names(model)
    rows = [_volume(row, names) for row in given]
    shown = columns(
        "device:text carries:left reads:count writes:count flushes:count read_p50_ns:ns:read,_median"
        " write_p50_ns:ns:write,_median late_p50_ns:ns:late,_median late_p99_ns:ns:late,_p99 late_max_ns:ns:latest:page"
        " floor_ns:ns:floor"
    )
    about = (
        "The engine is real, and its files are on modelled devices. Requests are those of the blocks that count; times"
        " are since the mount. Late: how much later than modelled a reply was sent. Floor: the kernel's cost per "
        "request, which is subtracted from each."
    )
    table = common.table("", shown, rows, look="slim")
    yield Section("volumes", "Modelled devices below the engine", about, tables=(table,))


def _volume(row: Entry, names: Mapping[Any, str]) -> TableRow:
    changed = [f"{fmt.line(name)} = {fmt.line(value)}" for name, value in (row.get("settings") or {}).items()]
    changed += ["direct I/O"] if row.get("direct_io") else []
    changed += ["polling"] if row.get("polls") else []
    arms = [fmt.line(names.get(at, at)) for at in row.get("arms") or ()]
    return {
        **row,
        "device": Cell(fmt.line(row.get("device") or "?"), notes=(*changed, *arms)),
        "carries": fmt.line(row.get("carries") or ""),
    }


def _law(broken: int, looks: int) -> str:
    """Return a sentence about whether Little's law holds."""
    if broken:
        return f"Little's law did not hold in {fmt.count(broken)} of {fmt.count(looks)} checks."
    return (
        "Little's law (mean number present = arrivals per time × mean time at the station) holds exactly at "
        f"each station in each block: {fmt.count(looks)} checks."
    )


def _device(model: Analysis, row: dict[str, object], *, several: bool) -> dict[str, object]:
    busiest, mean = fmt.number(row.get("utilisation_max")), fmt.number(row.get("utilisation"))
    apart = busiest is not None and mean is not None and busiest - mean >= 0.005
    many, servers = fmt.number(row.get("stations")) or 1, fmt.number(row.get("servers")) or 1
    name = fmt.line(row.get("station") or "?") + (f" × {fmt.count(many)}" if many > 1 else "")
    return {
        **row,
        "station": name + (f", {fmt.count(servers)} at once" if servers > 1 else ""),
        **({"arm": arm(model, row.get("arm"))} if several else {}),
        "bar": Cell(None if mean is None else min(max(mean, 0.0), 1.0)),
        "busy": mean,
        "busiest": busiest if many > 1 and apart else Cell("", "words"),
    }


def logs(model: Analysis) -> Iterator[Section]:
    """Yield, for a run on this host, the log writes by path, and the effect of a path that is too far behind."""
    given = reading.entries(model, "logs")
    if not given:
        return
    rows = [
        _path(model, log, path)
        for log in given
        for path in [*reading.entries(log, "paths"), {"path": "log writer", **(log.get("write") or {})}]
    ]
    shown = columns(
        "arm:text path:text:who writes:count mean_ns:ns:mean p50:ns p99:ns p99.9:ns max_ns:ns:slowest"
        " outliers:count:outliers:page behind:bytes:behind:page"
    )
    about = (
        "The time of a log write (log file parallel write). Of a path: from the request to its device until the copy "
        "is durable. Of the log writer: until it can continue. Behind: the most that a path still had to write."
    )
    table = common.table("", shown, rows, look="slim")
    notes = tuple(_backlog(model, log) for log in given if log.get("race"))
    yield Section("logs", "The log and its paths", about, tables=(table,), notes=notes, where="page")


def _path(model: Analysis, log: Entry, path: Mapping[str, Any]) -> TableRow:
    quantiles = reading.dig(path, "quantiles_ns") or {}
    file = fmt.line(path.get("file") or "")
    return {
        **path,
        "arm": arm(model, log.get("arm")),
        "path": Cell(fmt.line(path.get("path") or ""), notes=(file,) if file else ()),
        **{name: quantiles.get(name) for name in ("p50", "p99", "p99.9")},
        "behind": path.get("farthest_behind_bytes") or None,
    }


def _backlog(model: Analysis, log: Entry) -> str:
    """Return a sentence about the writes affected by a path that was too far behind."""
    found = log["race"]
    busy, held = fmt.count(found.get("skipped_busy")), fmt.count(found.get("held_back"))
    return (
        f"{arm(model, log.get('arm')).value}: {busy} writes went to the first path only, because the second was "
        f"too far behind (busy); {held} waited because the first path was too far behind."
    )
