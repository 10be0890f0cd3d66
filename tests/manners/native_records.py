"""Write the keys of manifests and block records that the native program checks, from the dataclasses in Python.

python tests/manners/native_records.py
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

from dbdyno.evidence import manifest
from dbdyno.evidence.run import Block, SliceRecord

PLACE = Path(__file__).parents[2] / "crates" / "dyno-entry" / "src" / "records.tsv"


def records() -> str:
    """Return a line for each key: its record, its name, the types of its value, and whether it is required.

    A reader of block records checks only the numbers.
    """
    rows = [("manifest", name, " ".join(kind.__name__ for kind in kinds)) for name, kinds in manifest.kinds().items()]
    for record, name in ((Block, "block"), (SliceRecord, "slice")):
        for field in fields(record):
            required = ("required",) if field.default is field.default_factory is MISSING else ("",)
            rows.append((name, field.name, "int" if field.type == "int" else "", *required))
    return "".join("\t".join(row if len(row) == 4 else (*row, "")) + "\n" for row in rows)


if __name__ == "__main__":
    PLACE.write_text(records())
