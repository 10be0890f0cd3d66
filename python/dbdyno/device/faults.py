"""Faults of devices as text: `KIND[:KEY=VALUE,...]`, as in `eio:path=pg_wal/*,operation=write,after=100,count=1`."""

from __future__ import annotations

import difflib

from dbdyno.base.device_types import FaultRule
from dbdyno.base.errors import DeviceError

KINDS = {
    "eio": "reads, writes and flushes fail with EIO",
    "enospc": "writes fail with ENOSPC",
    "slow": "they take `ms` longer",
    "stuck": "they never return",
    "lying-flush": "flushes report success and make nothing durable",
    "failed-flush": "flushes fail, and what they should have written is lost although later ones succeed",
    "write-hole": "after a power cut a member of a RAID-5 array is rebuilt from parity that does not fit the data",
}
"""Kinds of faults and their effects."""
WORDS = ("path", "operation")
NUMBERS = ("after", "count", "from_bytes", "to_bytes", "ms")
ARRAY = ("members", "stripe_kb")
"""Keys of the fault `write-hole` that describe the RAID array."""
OPERATIONS = ("read", "write", "flush")


def fault_rule(text: str) -> FaultRule:
    """Return the rule that a text describes.

    Raises:
        DeviceError: the kind or a key is unknown, or a value is not valid.
    """
    kind, _, rest = text.partition(":")
    if kind not in KINDS:
        raise _unknown(text, "kind of fault", kind, tuple(KINDS))
    rule: FaultRule = {"kind": kind}
    keys = ARRAY if kind == "write-hole" else (*WORDS, *NUMBERS)
    for part in rest.split(",") if rest else ():
        key, sign, value = part.partition("=")
        if not sign or key not in keys:
            raise _unknown(text, f"key of {kind}", key, keys)
        if key == "operation" and value not in OPERATIONS:
            raise _unknown(text, "operation", value, OPERATIONS)
        if key not in WORDS and not value.isdecimal():
            raise DeviceError(
                f"{key} must be a whole number, found {value!r}",
                where=f"--fail {text}",
                next_step="write a whole number",
            )
        rule[key] = value if key in WORDS else int(value)  # type: ignore[literal-required]
    return rule


def _unknown(text: str, what: str, found: str, known: tuple[str, ...]) -> DeviceError:
    near = difflib.get_close_matches(found, known, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return DeviceError(
        f"there is no {what} {found!r}", where=f"--fail {text}", next_step=f"{hint}use one of {', '.join(known)}"
    )
