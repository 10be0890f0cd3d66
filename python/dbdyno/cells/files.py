"""Files of archived answers: as they are, or packed as ExaWatcher packs them; whose they are.

`2015_01_17_09_02_55_CellSrvStatExaWatcher_exa1cel01.example.com.dat.bz2` names its cell. What is
packed is unpacked piece by piece, and refused as soon as it comes to more than `MOST_BYTES`, or to more
than `MOST_TIMES` of what was read for it: a file of 500 bytes could fill the memory.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from pathlib import Path
from typing import BinaryIO

from dbdyno.base.errors import CellsError

MOST_BYTES = 64 << 20
"""Of text: half a million values."""
MOST_TIMES = 250
"""Answers of cells pack 10 to 60 to one."""
_SMALL = 4 << 20
_PIECE = 1 << 20
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
            data = _read(file, path)
    except EOFError as error:
        raise CellsError(
            "cannot be read: what is packed ends too early",
            where=str(path),
            next_step="was it copied whole?",
        ) from error
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CellsError(f"cannot be read: {reason}", where=str(path)) from error
    return data.decode("utf-8", errors="replace")


def _read(file: BinaryIO, path: Path) -> bytes:
    """The bytes, as long as there are not too many of them."""
    packed = path.stat().st_size
    data = bytearray()
    while piece := file.read(_PIECE):
        data += piece
        if len(data) > MOST_BYTES:
            raise CellsError(
                f"is larger than {MOST_BYTES >> 20} MiB" + (" when unpacked" if packed < len(data) else ""),
                where=str(path),
                next_step=f"unpack it and divide it between lines: `split -C {MOST_BYTES >> 21}m FILE`",
            )
        if len(data) > max(_SMALL, MOST_TIMES * packed):
            raise CellsError(
                f"{packed} bytes unpack to more than {MOST_TIMES} times as much: this is no answer of a cell",
                where=str(path),
                next_step="if it is one all the same, unpack it and give the plain file",
            )
    return bytes(data)


def cell_of(path: Path) -> str:
    """Whose a file is, by its name: what ExaWatcher wrote there, else the name without suffix."""
    match = _EXAWATCHER.fullmatch(path.name)
    return match["cell"] if match else path.stem
