"""Files of archived answers: as they are, or packed as ExaWatcher packs them; whose they are.

`2015_01_17_09_02_55_CellSrvStatExaWatcher_exa1cel01.example.com.dat.bz2` names its cell. A file
that unpacks to more than `MOST_BYTES` is refused, since a small one could fill the memory.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from pathlib import Path

from dbdyno.errors import CellsError

MOST_BYTES = 512 << 20
_PACKED = {b"BZh": bz2.BZ2File, b"\x1f\x8b": gzip.GzipFile, b"\xfd7zXZ": lzma.LZMAFile}
_EXAWATCHER = re.compile(r"\d{4}(?:_\d\d){5}_\w*ExaWatcher_(?P<cell>[A-Za-z0-9-]+)[\w.-]*")


def text_of(path: Path) -> str:
    """The text of a file, unpacked (bzip2, gzip, xz, told by its first bytes); raises
    `CellsError`. Bytes that are no UTF-8 become U+FFFD."""
    try:
        with path.open("rb") as file:
            head = file.read(6)
        kind = next((own for first, own in _PACKED.items() if head.startswith(first)), None)
        with kind(path) if kind else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except EOFError as error:
        raise CellsError(
            "cannot be read: what is packed ends too early",
            where=str(path),
            next_step="was it copied whole?",
        ) from error
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CellsError(f"cannot be read: {reason}", where=str(path)) from error
    if len(data) > MOST_BYTES:
        raise CellsError(
            f"is larger than {MOST_BYTES >> 20} MiB",
            where=str(path),
            next_step="divide it between lines: `split -C 200m FILE`",
        )
    return data.decode("utf-8", errors="replace")


def cell_of(path: Path) -> str:
    """Whose a file is, by its name: what ExaWatcher wrote there, else the name without suffix."""
    match = _EXAWATCHER.fullmatch(path.name)
    return match["cell"] if match else path.stem
