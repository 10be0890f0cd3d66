"""Reader of a Linux host's evidence in /sys and /proc; a value that is missing or unreadable is None or left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dbdyno.advise.facts import Facts
from dbdyno.advise.host.parts import Device, Kernel, Mount
from dbdyno.base.errors import AdviceError

_SECTOR = 512
_VM = (
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_ratio",
    "dirty_bytes",
    "swappiness",
    "zone_reclaim_mode",
)
_VMSTAT = ("pswpin", "pswpout", "compact_stall", "zone_reclaim_success", "zone_reclaim_failed", "numa_hit", "numa_miss")
_MEMINFO = ("MemTotal", "MemAvailable", "SwapTotal")
_THP = "sys/kernel/mm/transparent_hugepage/enabled"


def read(root: Path = Path("/")) -> Facts:
    """Return the evidence of a host whose /sys and /proc are below `root`.

    Raises:
        AdviceError: `root` has no /sys and /proc of a Linux host.
    """
    if not (root / "proc" / "meminfo").is_file() or not (root / "sys").is_dir():
        raise AdviceError(
            "does not contain /proc and /sys of a Linux host",
            where=str(root),
            next_step="run the command on the host of the database, or describe the storage stack in a file",
        )
    kernel = _kernel(root)
    window = f"since the boot, {kernel.uptime_s / 3600:,.1f} h" if kernel.uptime_s else "since the boot"
    rows: dict[type, Sequence[Any]] = {Kernel: [kernel], Device: list(_devices(root)), Mount: list(_mounts(root))}
    return Facts("this host" if root == Path("/") else str(root), "host", rows, window=window)


def text_of(path: Path) -> str | None:
    """Return the text of a small file, or None if the file is missing or unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(1 << 20).decode(errors="replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = text_of(path)
    return int(text) if text is not None and re.fullmatch(r"-?\d{1,18}", text) else None


def _bracketed_word(text: str | None) -> str:
    """Return the word in brackets, such as `mq-deadline` in `none [mq-deadline] bfq`."""
    found = re.search(r"\[([^\[\]]*)\]", text or "")
    return found[1] if found else text or ""


def _devices(root: Path) -> Iterator[Device]:
    block = root / "sys" / "block"
    for folder in sorted(block.iterdir()) if block.is_dir() else ():
        stat = (text_of(folder / "stat") or "").split()
        if len(stat) < 11 or not all(one.isdigit() for one in stat[:11]):
            continue
        counts = [int(one) for one in stat[:11]]
        if counts[0] + counts[4] == 0:
            continue
        rotational = _number(folder / "queue" / "rotational")
        yield Device(
            name=folder.name,
            scheduler=_bracketed_word(text_of(folder / "queue" / "scheduler")),
            nr_requests=_number(folder / "queue" / "nr_requests"),
            queue_depth=_number(folder / "device" / "queue_depth"),
            read_ahead_kb=_number(folder / "queue" / "read_ahead_kb"),
            write_cache=text_of(folder / "queue" / "write_cache") or "",
            is_rotational=None if rotational is None else bool(rotational),
            reads=counts[0],
            read_bytes=counts[2] * _SECTOR,
            writes=counts[4],
            written_bytes=counts[6] * _SECTOR,
            busy_ms=counts[9],
            weighted_ms=counts[10],
        )


def _mounts(root: Path) -> Iterator[Mount]:
    """Yield the mounts of block devices, with the name of the whole device in /sys/block."""
    for line in (text_of(root / "proc" / "mounts") or "").splitlines():
        parts = [_unescape(one) for one in line.split(" ")]
        if len(parts) >= 4 and parts[0].startswith("/dev/"):
            yield Mount(_whole(root, parts[0]), parts[1], parts[2], tuple(parts[3].split(",")))


def _unescape(text: str) -> str:
    """Return a path with the kernel's escapes resolved, such as `/my\\040disk` for a blank."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _whole(root: Path, path: str) -> str:
    """Return the whole block device: `sda` for `/dev/sda1`, `dm-0` for `/dev/mapper/data`."""
    name = path.rpartition("/")[2]
    block = root / "sys" / "block"
    if path.startswith("/dev/mapper/"):
        found = (one.parent.parent.name for one in block.glob("dm-*/dm/name") if text_of(one) == name)
        return next(found, name)
    if (block / name).exists():
        return name
    return next((one.parent.name for one in block.glob(f"*/{_literal(name)}")), name)


def _literal(name: str) -> str:
    """Return a name with its pattern characters escaped."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _kernel(root: Path) -> Kernel:
    values = {f"/proc/sys/vm/{name}": _number(root / "proc" / "sys" / "vm" / name) for name in _VM}
    values |= {f"/proc/vmstat:{name}": number for name, number in _table(root, "vmstat", _VMSTAT)}
    values |= {f"/proc/meminfo:{name}": number * 1024 for name, number in _table(root, "meminfo", _MEMINFO)}
    up = (text_of(root / "proc" / "uptime") or "").split()
    nodes = len(list((root / "sys" / "devices" / "system" / "node").glob("node[0-9]*")))
    return Kernel(
        {name: number for name, number in values.items() if number is not None},
        {f"/{_THP}": _bracketed_word(text_of(root / _THP))},
        nodes,
        float(up[0]) if up and re.fullmatch(r"\d+(\.\d+)?", up[0]) else None,
    )


def _table(root: Path, file: str, names: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield names and numbers from the lines `name number` or `name: number kB` of a file in /proc, for these names."""
    for line in (text_of(root / "proc" / file) or "").splitlines():
        parts = line.replace(":", " ").split()
        if len(parts) >= 2 and parts[0] in names and parts[1].isdigit():
            yield parts[0], int(parts[1])
