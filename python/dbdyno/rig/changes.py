"""CREATE, DROP, ALTER, DESCRIBE and HELP of a modelled cell.

| command | what happens in the model |
|---|---|
| alter iormplan dbplan=(...) | shares, levels, limits, flashCache and flashLog per database |
| create, drop flashcache [all] [size=] | the cache is really empty, and fills again |
| alter flashcache all flush, cancel flush | dirty lines go to disk; writes go past the cache |
| create, drop flashlog [all] | the race begins, ends |
| alter cell flashCacheMode= | for the next flash cache |
| alter cell restart services all | counters and history begin anew |
| alter griddisk all, NAMES cachingPolicy= | of whole groups |
| create, drop griddisk all flashdisk, harddisk prefix= | space is taken; nobody does I/O there |

An objective of a plan is kept and shown, and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.cells.numbers import number_and_unit, size_bytes
from dbdyno.rig.language import KINDS, Change, RefusedError, Value, syntax
from dbdyno.rig.things import ATTRIBUTES

if TYPE_CHECKING:
    from dbdyno.rig.cell import Cell

OBJECTIVES = ("basic", "auto", "low_latency", "balanced", "high_throughput")
SPELT = {
    "name": "name", "share": "share", "level": "level", "allocation": "allocation",
    "limit": "limit", "flashcache": "flashCache", "flashlog": "flashLog",
}  # fmt: skip
"""The attributes of a directive that the model knows."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_$#.]{0,29}")


def carry_out(cell: Cell, change: Change) -> str:
    """What CellCLI prints when it is done; raises `RefusedError` or the model's `ModelError`."""
    if change.verb == "help":
        return _help()
    if change.verb == "describe":
        if change.kind not in KINDS or change.words or change.options:
            syntax()
        return "".join(f"\t {name}\n" for name in ATTRIBUTES[change.kind])
    work = _COMMANDS.get((change.verb, change.kind))
    if work is None:
        syntax()
    return work(cell, change)


def _help() -> str:
    forms = sorted({f"{verb} {kind}".upper() for verb, kind in _COMMANDS})
    forms += [f"LIST {kind.upper()}" for kind in KINDS] + ["DESCRIBE", "HELP"]
    return "".join(f"\t {form}\n" for form in ["Commands of this modelled cell:", *forms])


def _only(change: Change, *words: Sequence[str], options: Sequence[str] = ()) -> None:
    """Refuses words and options that a command does not have."""
    said = tuple(word.lower() for word in change.words)
    if said not in {tuple(one) for one in words} or set(change.options) - set(options):
        syntax()


def _text(value: Value) -> str:
    if not isinstance(value, str):
        syntax()
    return value


def _size(change: Change) -> int | None:
    """Bytes of `size=`, None where there is none."""
    if "size" not in change.options:
        return None
    given = size_bytes(_text(change.options["size"]).upper())
    return syntax() if given is None else given


def _refuse(words: str) -> RefusedError:
    return RefusedError(2526, f"Pre-condition failed: {words}.")


# --- flash cache and flash log ---


def _create_flash_cache(cell: Cell, change: Change) -> str:
    _only(change, (), ("all",), options=("size",))
    given = _size(change)
    facts = cell.facts()
    if facts["flash_cache_bytes"]:
        raise _refuse(f"flash cache {cell.name}_FLASHCACHE exists")
    free = sum(cell.free_bytes(facts, disk) for disk in facts["cell_disks"] if disk["flash"])
    wanted = free if given is None else given
    if not 0 < wanted <= free:
        raise _refuse(f"the flash disks have {free / 2**30:.6g}G free")
    mode = "write-through" if cell.mode == "none" else cell.mode
    cell.rack.command(cell.number, "create-flash-cache", mode=mode, size_gb=wanted / 2**30)
    cell.mode, cell.flushing = mode, None
    cell.cache_made_ns = cell.rack.clock_ns()
    return f"Flash cache {cell.name}_FLASHCACHE successfully created\n"


def _drop_flash_cache(cell: Cell, change: Change) -> str:
    _only(change, (), ("all",))
    _need_cache(cell)
    cell.rack.command(cell.number, "drop-flash-cache")
    cell.flushing = None
    return f"Flash cache {cell.name}_FLASHCACHE successfully dropped\n"


def _alter_flash_cache(cell: Cell, change: Change) -> str:
    _only(change, ("all", "flush"), ("all", "cancel", "flush"))
    _need_cache(cell)
    cancel = len(change.words) == 3
    cell.rack.command(cell.number, "flush", cancel=cancel)
    cell.flushing = None if cancel else True
    return f"Flash cache {cell.name}_FLASHCACHE altered successfully\n"


def _need_cache(cell: Cell) -> None:
    if not cell.facts()["flash_cache_bytes"]:
        raise RefusedError(2007, "flashcache does not exist.")


def _create_flash_log(cell: Cell, change: Change) -> str:
    _only(change, (), ("all",))
    if cell.facts()["flash_log"]:
        raise _refuse(f"flash log {cell.name}_FLASHLOG exists")
    cell.rack.command(cell.number, "flash-log", exists=True)
    cell.log_made_ns = cell.rack.clock_ns()
    return f"Flash log {cell.name}_FLASHLOG successfully created\n"


def _drop_flash_log(cell: Cell, change: Change) -> str:
    _only(change, (), ("all",))
    if not cell.facts()["flash_log"]:
        raise RefusedError(2007, "flashlog does not exist.")
    cell.rack.command(cell.number, "flash-log", exists=False)
    return f"Flash log {cell.name}_FLASHLOG successfully dropped\n"


# --- the cell itself ---


def _alter_cell(cell: Cell, change: Change) -> str:
    said = [word.lower() for word in change.words]
    if said[:2] == ["restart", "services"] and said[2:] in (["all"], ["cellsrv"]):
        _only(change, said)
        cell.rack.restart(cell.number)
        return "\nRestarting CELLSRV services...\nThe RESTART of CELLSRV services was successful.\n"
    _only(change, (), options=("flashcachemode",))
    modes = {"writethrough": "write-through", "writeback": "write-back"}
    mode = modes.get(_text(change.options.get("flashcachemode", "")).lower())
    if mode is None:
        syntax()
    if cell.facts()["flash_cache_bytes"]:
        raise _refuse(f"drop the flash cache {cell.name}_FLASHCACHE first")
    cell.mode = mode
    return f"Cell {cell.name} successfully altered\n"


# --- grid disks ---


def _create_grid_disks(cell: Cell, change: Change) -> str:
    from dbdyno.rig.cell import Extra

    _only(change, ("all", "flashdisk"), ("all", "harddisk"), options=("prefix", "size"))
    prefix, flash = _text(change.options.get("prefix", "")), change.words[1].lower() == "flashdisk"
    if not _NAME.fullmatch(prefix):
        syntax()
    given = _size(change)
    facts = cell.facts()
    disks = [disk for disk in facts["cell_disks"] if disk["flash"] == flash]
    free = min((cell.free_bytes(facts, disk) for disk in disks), default=0)
    wanted = free if given is None else given
    taken = {g["name"] for g in facts["grid_disks"]} | {extra.name for extra in cell.extra}
    made = [
        Extra(f"{prefix}_{d['name']}", d["name"], flash, wanted, d["bytes"] - free) for d in disks
    ]
    for extra in made:
        if extra.name in taken:
            raise _refuse(f"grid disk {extra.name} exists")
    if not 0 < wanted <= free:
        raise _refuse(f"each cell disk has {free / 2**30:.6g}G free")
    cell.extra += made
    return "".join(f"GridDisk {extra.name} successfully created\n" for extra in made)


def _drop_grid_disks(cell: Cell, change: Change) -> str:
    _only(change, ("all",), ("all", "flashdisk"), ("all", "harddisk"), options=("prefix",))
    prefix = _text(change.options.get("prefix", ""))
    kind = change.words[1].lower() if len(change.words) > 1 else ""
    if not prefix:
        syntax()
    if any(g["group"] == prefix for g in cell.facts()["grid_disks"]):
        raise _refuse(f"grid disks {prefix} are in use")
    gone = [
        extra
        for extra in cell.extra
        if extra.name == f"{prefix}_{extra.cell_disk}"
        and (not kind or extra.flash == (kind == "flashdisk"))
    ]
    cell.extra = [extra for extra in cell.extra if extra not in gone]
    return "".join(f"GridDisk {extra.name} successfully dropped\n" for extra in gone)


def _alter_grid_disks(cell: Cell, change: Change) -> str:
    policy = _text(change.options.get("cachingpolicy", "")).lower()
    if set(change.options) != {"cachingpolicy"} or policy not in ("default", "none"):
        syntax()
    groups: dict[str, set[str]] = {}
    for disk in cell.facts()["grid_disks"]:
        groups.setdefault(disk["group"], set()).add(disk["name"])
    everything = {name for names in groups.values() for name in names}
    said = set(change.words) if change.words != ("all",) else everything
    if not said or said - everything:
        raise RefusedError(2007, f"griddisk does not exist: {', '.join(sorted(said - everything))}")
    parts = [name for name, own in groups.items() if 0 < len(own & said) < len(own)]
    if parts:
        raise _refuse(f"in this model the grid disks of a group have one policy: {parts[0]}")
    for group, own in groups.items():
        if own & said:
            cell.rack.command(cell.number, "caching", group=group, caching=policy)
    return "".join(f"GridDisk {name} successfully altered\n" for name in sorted(said))


# --- resource management ---


def _alter_iorm_plan(cell: Cell, change: Change) -> str:
    if change.words in (("active",), ("inactive",)) and not change.options:
        cell.plan.active = change.words == ("active",)
        _put_plan(cell, cell.plan.database)
        return "IORMPLAN successfully altered\n"
    if (
        change.words
        or not change.options
        or set(change.options) - {"objective", "dbplan", "catplan"}
    ):
        syntax()
    objective = _text(change.options.get("objective", cell.plan.objective)).lower()
    if objective not in OBJECTIVES:
        syntax()
    if change.options.get("catplan", "") not in ("", []):
        raise _refuse("this model knows no categories")
    if "dbplan" in change.options:
        lines = _lines(change.options["dbplan"])
        _put_plan(cell, lines)
        cell.plan.database = lines
    cell.plan.objective = objective
    return "IORMPLAN successfully altered\n"


def _put_plan(cell: Cell, lines: Sequence[str]) -> None:
    """Puts directives in force; those of an inactive plan are not."""
    directives = [dict(word.split("=", 1) for word in line.split(",")) for line in lines]
    plan = {_known_as(one["name"]): _in_model(one) for one in directives}
    cell.rack.command(cell.number, "plan", plan=plan if cell.plan.active else {})


def _known_as(name: str) -> str:
    return "other" if name.lower() in ("other", "default") else name


def _in_model(directive: dict[str, str]) -> dict[str, Any]:
    return {
        "share": int(directive.get("share", 1)),
        "level": int(directive.get("level", 0)),
        "allocation": float(directive.get("allocation", 0)),
        "limit": float(directive.get("limit", 100)),
        "flash_cache": directive.get("flashCache", "on") == "on",
        "flash_log": directive.get("flashLog", "on") == "on",
    }


def _lines(value: Value) -> list[str]:
    """The directives of a dbplan, checked, a text each; '' lifts the plan."""
    if value in ("", []):
        return []
    directives = [value] if isinstance(value, dict) else value
    if not isinstance(directives, list):
        syntax()
    lines, names = [], []
    for directive in directives:
        if not isinstance(directive, dict):
            syntax()
        checked = _directive(directive)
        names.append(checked["name"].lower())
        lines.append(",".join(f"{key}={text}" for key, text in checked.items()))
    if len(set(names)) < len(names):
        raise _refuse("a database has two directives")
    _check_levels(directives, names)
    return lines


def _directive(directive: dict[str, Value]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for key, value in directive.items():
        if key not in SPELT:
            raise _refuse(f"this model knows no {key} of a database")
        text = _text(value)
        if key == "name":
            good = _NAME.fullmatch(text) is not None
        elif key in ("flashcache", "flashlog"):
            text = text.lower()
            good = text in ("on", "off")
        else:
            number = number_and_unit(text)
            low, high = {"share": (1, 32), "level": (1, 8)}.get(
                key, (0 if key == "allocation" else 1, 100)
            )
            good = number is not None and number[1] == "" and low <= number[0] <= high
            good = good and text.isdigit()
        if not good:
            syntax()
        checked[SPELT[key]] = text
    if "name" not in checked or ("share" in checked and "allocation" in checked):
        syntax()
    if ("level" in checked) != ("allocation" in checked):
        syntax()
    return checked


def _check_levels(directives: Sequence[Any], names: Sequence[str]) -> None:
    sums: dict[str, int] = {}
    for directive in directives:
        if "level" in directive:
            sums[directive["level"]] = sums.get(directive["level"], 0) + int(
                directive["allocation"]
            )
    if sums and "other" not in names:
        raise _refuse("a plan with allocations has a directive for other")
    for level, total in sums.items():
        if total > 100:
            raise _refuse(f"the allocations of level {level} are {total} together")


_COMMANDS: dict[tuple[str, str], Callable[[Cell, Change], str]] = {
    ("create", "flashcache"): _create_flash_cache,
    ("drop", "flashcache"): _drop_flash_cache,
    ("alter", "flashcache"): _alter_flash_cache,
    ("create", "flashlog"): _create_flash_log,
    ("drop", "flashlog"): _drop_flash_log,
    ("alter", "cell"): _alter_cell,
    ("create", "griddisk"): _create_grid_disks,
    ("drop", "griddisk"): _drop_grid_disks,
    ("alter", "griddisk"): _alter_grid_disks,
    ("alter", "iormplan"): _alter_iorm_plan,
}
