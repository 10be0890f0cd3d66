"""CREATE, DROP, ALTER, DESCRIBE and HELP of a modelled cell.

| command | what happens in the model |
|---|---|
| alter iormplan dbplan=(...) | shares, levels, limits, flashCache and flashLog per database |
| create, drop flashcache all [size=] | the cache is really empty, and fills again |
| alter flashcache all flush, cancel flush | dirty lines go to disk; writes bypass the cache |
| create, drop flashlog all | log writes go to flash and disk at once, or to disk only |
| alter cell flashCacheMode= | applies to the next flash cache that is created |
| alter cell restart services all | counters and history start again |
| alter griddisk all, NAMES cachingPolicy= | the policy changes for whole groups of grid disks |
| create, drop griddisk all flashdisk, harddisk prefix= | space is allocated; nothing does I/O there |
| create, alter, drop threshold; alter, drop alerthistory | see `alerts` |

Space is allocated in units of 16 MB, as real cells do: requested sizes are rounded down to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dbdyno.cells.numbers import size_bytes
from dbdyno_rig.language import KINDS, Change, RefusedError, raise_syntax_error, refusal, text_of
from dbdyno_rig.limits import (
    alter_alerts,
    alter_threshold,
    create_threshold,
    drop_alerts,
    drop_threshold,
)
from dbdyno_rig.objects import ATTRIBUTES, MODIFIABLE
from dbdyno_rig.plans import alter_iorm_plan
from dbdyno_rig.state import CellState, CreatedGridDisk

UNIT_BYTES = 16 << 20
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_$#.]{0,29}")


def execute(cell: CellState, change: Change) -> str:
    """Carry out a command and return what CellCLI prints.

    Raises:
        RefusedError: CellCLI refuses the command.
        ModelError: The model refuses the command.
    """
    if change.verb == "help":
        return _help(change)
    if change.verb == "describe":
        return _describe(change)
    found = _COMMANDS.get((change.verb, change.kind))
    if found is None:
        raise_syntax_error()
    return found[0](cell, change)


def _describe(change: Change) -> str:
    if change.kind not in KINDS or change.words or change.options:
        raise_syntax_error()
    modifiable = MODIFIABLE.get(change.kind, ())
    return "".join(
        f"\t {name:<24}modifiable\n" if name in modifiable else f"\t {name}\n" for name in ATTRIBUTES[change.kind]
    )


def _help(change: Change) -> str:
    """Return the HELP topics, or the syntax of the commands that begin with the requested words."""
    forms = {f"{verb} {kind}": form for (verb, kind), (_, form) in _COMMANDS.items()}
    forms |= {f"list {kind}": _LIST for kind in KINDS}
    asked = " ".join((change.kind, *change.words))
    if not asked:
        topics = sorted({"describe", *forms, *(topic.split()[0] for topic in forms)})
        return "\n HELP [topic]\n   Available Topics:\n" + _lines([t.upper() for t in topics])
    forms |= {f"describe {kind}": "" for kind in KINDS}
    found = [t for t in forms if t == asked or t.startswith(f"{asked} ")]
    if not found:
        raise_syntax_error()
    return "\n" + _lines([f"{t.upper()} {forms[t]}".rstrip() for t in sorted(found)])


def _lines(texts: Sequence[str]) -> str:
    return "".join(f"\t {text}\n" for text in texts)


def _refuse_others(change: Change, *words: Sequence[str], options: Sequence[str] = ()) -> None:
    """Refuse words and options that a command does not have."""
    said = tuple(word.lower() for word in change.words)
    if said not in {tuple(one) for one in words} or set(change.options) - set(options):
        raise_syntax_error()


def _size(change: Change) -> int | None:
    """Return the value of `size=` [bytes], rounded down to whole units but at least one unit; None without `size=`."""
    if "size" not in change.options:
        return None
    given = size_bytes(text_of(change.options["size"]).upper())
    return raise_syntax_error() if given is None else max(1, given // UNIT_BYTES) * UNIT_BYTES


def _every_flash_disk(cell: CellState, change: Change) -> None:
    """Accept ALL, or CELLDISK= with the names of all flash disks: the model supports no subset."""
    if "celldisk" not in change.options:
        return
    asked = {name.strip().lower() for name in text_of(change.options["celldisk"]).split(",")}
    disks = {disk["name"].lower(): disk["flash"] for disk in cell.facts()["cell_disks"]}
    unknown = sorted(asked - set(disks))
    if unknown:
        raise RefusedError(2007, f"celldisk does not exist: {', '.join(unknown)}")
    if asked != {name for name, flash in disks.items() if flash}:
        raise refusal("in this model, a flash cache or flash log always uses all flash disks")


# --- flash cache and flash log ---


def _create_flash_cache(cell: CellState, change: Change) -> str:
    named = "celldisk" in change.options
    _refuse_others(change, () if named else ("all",), options=("celldisk", "size"))
    _every_flash_disk(cell, change)
    given = _size(change)
    facts = cell.facts()
    if facts["flash_cache_bytes"]:
        raise refusal(f"flash cache {cell.name}_FLASHCACHE exists")
    free = sum(cell.free_bytes(facts, disk) for disk in facts["cell_disks"] if disk["flash"])
    wanted = free if given is None else given
    if not 0 < wanted <= free:
        raise refusal(f"the flash disks have only {free / 2**30:.6g}G free")
    mode = "write-through" if cell.mode == "none" else cell.mode
    cell.rack.run_command(cell.number, "create-flash-cache", mode=mode, size_gb=wanted / 2**30)
    cell.mode, cell.flushing = mode, None
    cell.cache_made_ns = cell.rack.clock_ns()
    return f"Flash cache {cell.name}_FLASHCACHE successfully created\n"


def _drop_flash_cache(cell: CellState, change: Change) -> str:
    _refuse_others(change, (), ("all",))
    _need_cache(cell)
    cell.rack.run_command(cell.number, "drop-flash-cache")
    cell.flushing = None
    return f"Flash cache {cell.name}_FLASHCACHE successfully dropped\n"


def _alter_flash_cache(cell: CellState, change: Change) -> str:
    _refuse_others(change, ("all", "flush"), ("all", "cancel", "flush"))
    _need_cache(cell)
    cancel = len(change.words) == 3
    cell.rack.run_command(cell.number, "flush", cancel=cancel)
    cell.flushing = None if cancel else True
    return f"Flash cache {cell.name}_FLASHCACHE altered successfully\n"


def _need_cache(cell: CellState) -> None:
    if not cell.facts()["flash_cache_bytes"]:
        raise RefusedError(2007, "flashcache does not exist.")


def _create_flash_log(cell: CellState, change: Change) -> str:
    _refuse_others(change, () if "celldisk" in change.options else ("all",), options=("celldisk",))
    _every_flash_disk(cell, change)
    if cell.facts()["flash_log"]:
        raise refusal(f"flash log {cell.name}_FLASHLOG exists")
    cell.rack.run_command(cell.number, "flash-log", exists=True)
    cell.log_made_ns = cell.rack.clock_ns()
    return f"Flash log {cell.name}_FLASHLOG successfully created\n"


def _drop_flash_log(cell: CellState, change: Change) -> str:
    _refuse_others(change, (), ("all",))
    if not cell.facts()["flash_log"]:
        raise RefusedError(2007, "flashlog does not exist.")
    cell.rack.run_command(cell.number, "flash-log", exists=False)
    return f"Flash log {cell.name}_FLASHLOG successfully dropped\n"


# --- the cell itself ---


def _alter_cell(cell: CellState, change: Change) -> str:
    said = [word.lower() for word in change.words]
    if said[:2] == ["restart", "services"] and said[2:] in (["all"], ["cellsrv"]):
        _refuse_others(change, said)
        cell.rack.restart(cell.number)
        return "\nRestarting CELLSRV services...\nThe RESTART of CELLSRV services was successful.\n"
    _refuse_others(change, (), options=("flashcachemode",))
    modes = {"writethrough": "write-through", "writeback": "write-back"}
    mode = modes.get(text_of(change.options.get("flashcachemode", "")).lower())
    if mode is None:
        raise_syntax_error()
    if cell.facts()["flash_cache_bytes"]:
        raise refusal(f"drop the flash cache {cell.name}_FLASHCACHE first")
    cell.mode = mode
    return f"Cell {cell.name} successfully altered\n"


# --- grid disks ---


def _create_grid_disks(cell: CellState, change: Change) -> str:
    _refuse_others(change, ("all", "flashdisk"), ("all", "harddisk"), options=("prefix", "size"))
    prefix = text_of(change.options.get("prefix", ""))
    flash = change.words[1].lower() == "flashdisk"
    if not _NAME.fullmatch(prefix):
        raise_syntax_error()
    given = _size(change)
    facts = cell.facts()
    disks = [disk for disk in facts["cell_disks"] if disk["flash"] == flash]
    free = min((cell.free_bytes(facts, disk) for disk in disks), default=0)
    wanted = free // UNIT_BYTES * UNIT_BYTES if given is None else given
    taken = {g["name"] for g in facts["grid_disks"]} | {extra.name for extra in cell.extra}
    made = [CreatedGridDisk(f"{prefix}_{d['name']}", d["name"], flash, wanted, d["bytes"] - free) for d in disks]
    for extra in made:
        if extra.name in taken:
            raise refusal(f"grid disk {extra.name} exists")
    if not 0 < wanted <= free:
        raise refusal(f"each cell disk has only {free / 2**30:.6g}G free")
    cell.extra += made
    return "".join(f"GridDisk {extra.name} successfully created\n" for extra in made)


def _drop_grid_disks(cell: CellState, change: Change) -> str:
    _refuse_others(change, ("all",), ("all", "flashdisk"), ("all", "harddisk"), options=("prefix",))
    prefix = text_of(change.options.get("prefix", ""))
    kind = change.words[1].lower() if len(change.words) > 1 else ""
    if not prefix:
        raise_syntax_error()
    if any(g["group"] == prefix for g in cell.facts()["grid_disks"]):
        raise refusal(f"grid disks {prefix} are in use")
    gone = [
        extra
        for extra in cell.extra
        if extra.name == f"{prefix}_{extra.cell_disk}" and (not kind or extra.flash == (kind == "flashdisk"))
    ]
    cell.extra = [extra for extra in cell.extra if extra not in gone]
    return "".join(f"GridDisk {extra.name} successfully dropped\n" for extra in gone)


def _alter_grid_disks(cell: CellState, change: Change) -> str:
    policy = text_of(change.options.get("cachingpolicy", "")).lower()
    if set(change.options) != {"cachingpolicy"} or policy not in ("default", "none"):
        raise_syntax_error()
    groups: dict[str, set[str]] = {}
    for disk in cell.facts()["grid_disks"]:
        groups.setdefault(disk["group"], set()).add(disk["name"])
    everything = {name for names in groups.values() for name in names}
    said = set(change.words) if change.words != ("all",) else everything
    if not said or said - everything:
        raise RefusedError(2007, f"griddisk does not exist: {', '.join(sorted(said - everything))}")
    parts = [name for name, own in groups.items() if 0 < len(own & said) < len(own)]
    if parts:
        raise refusal(f"in this model, all grid disks of group {parts[0]} must have the same caching policy")
    for group, own in groups.items():
        if own & said:
            cell.rack.run_command(cell.number, "caching", group=group, caching=policy)
    return "".join(f"GridDisk {name} successfully altered\n" for name in sorted(said))


_LIST = "[name, ... | WHERE ...] [ATTRIBUTES ...] [ORDER BY ... LIMIT n] [DETAIL]"
_COMMANDS: dict[tuple[str, str], tuple[Callable[[CellState, Change], str], str]] = {
    ("create", "flashcache"): (_create_flash_cache, "{ALL | CELLDISK='fd, ...'} [SIZE=]"),
    ("drop", "flashcache"): (_drop_flash_cache, "[ALL]"),
    ("alter", "flashcache"): (_alter_flash_cache, "ALL [CANCEL] FLUSH"),
    ("create", "flashlog"): (_create_flash_log, "{ALL | CELLDISK='fd, ...'}"),
    ("drop", "flashlog"): (_drop_flash_log, "[ALL]"),
    ("alter", "cell"): (_alter_cell, "{FLASHCACHEMODE= | RESTART SERVICES {ALL | CELLSRV}}"),
    ("create", "griddisk"): (_create_grid_disks, "ALL {FLASHDISK | HARDDISK} PREFIX= [, SIZE=]"),
    ("drop", "griddisk"): (_drop_grid_disks, "ALL [FLASHDISK | HARDDISK] PREFIX="),
    ("alter", "griddisk"): (_alter_grid_disks, "{ALL | name, ...} CACHINGPOLICY="),
    ("alter", "iormplan"): (alter_iorm_plan, "{[OBJECTIVE=] [DBPLAN=(...)] | ACTIVE | INACTIVE}"),
    ("create", "threshold"): (
        create_threshold,
        "metric[.object] COMPARISON= [, WARNING=] [, CRITICAL=] [, OCCURRENCES=] [, OBSERVATION=]",
    ),
    ("alter", "threshold"): (alter_threshold, "{ALL | name, ...} attribute=value, ..."),
    ("drop", "threshold"): (drop_threshold, "{ALL | name, ...}"),
    ("alter", "alerthistory"): (alter_alerts, "{ALL | name, ...} EXAMINEDBY="),
    ("drop", "alerthistory"): (drop_alerts, "ALL"),
}
"""Each command with its function and the syntax that HELP shows."""
