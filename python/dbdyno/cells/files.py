"""Files of archived answers, plain or compressed as by ExaWatcher, and the cell to which each file belongs.

`2015_01_17_09_02_55_CellSrvStatExaWatcher_exa1cel01.example.com.dat.bz2` names its cell. Compressed files are unpacked
in pieces, and refused as soon as the text exceeds `MOST_BYTES`, or `MOST_TIMES` times the size of the file: otherwise,
a file of 500 bytes could fill the memory.
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
"""Maximum size of the text [bytes], which is enough for about half a million values."""
MOST_TIMES = 250
"""Maximum compression ratio; compressed answers of cells have ratios of 10 to 60."""
_SMALL = 4 << 20
_PIECE = 1 << 20
_PACKED = {b"BZh": bz2.BZ2File, b"\x1f\x8b": gzip.GzipFile, b"\xfd7zXZ": lzma.LZMAFile}
_EXAWATCHER = re.compile(r"\d{4}(?:_\d\d){5}_\w*ExaWatcher_(?P<cell>[A-Za-z0-9-]+)[\w.-]*")


def text_of(path: Path) -> str:
    """Return the text of a file, unpacked if it begins as bzip2, gzip or xz files do; invalid UTF-8 becomes U+FFFD.

    Raises:
        CellsError: The file cannot be read, is truncated, or is too large.
    """
    try:
        with path.open("rb") as file:
            head = file.read(6)
        kind = next((own for first, own in _PACKED.items() if head.startswith(first)), None)
        with kind(path) if kind else path.open("rb") as file:
            data = _read(file, path)
    except EOFError as error:
        raise CellsError(
            "cannot be unpacked: the file ends too early",
            where=str(path),
            next_step="copy the complete file again",
        ) from error
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CellsError(
            f"cannot be read: {reason}", where=str(path), next_step="check the path and the permissions of the file"
        ) from error
    return data.decode("utf-8", errors="replace")


def _read(file: BinaryIO, path: Path) -> bytes:
    """Return the bytes of a file, up to the limits; raise `CellsError` beyond them."""
    packed = path.stat().st_size
    data = bytearray()
    while piece := file.read(_PIECE):
        data += piece
        if len(data) > MOST_BYTES:
            raise CellsError(
                f"is larger than {MOST_BYTES >> 20} MiB" + (" when unpacked" if packed < len(data) else ""),
                where=str(path),
                next_step=f"unpack the file and split it between lines: `split -C {MOST_BYTES >> 21}m FILE`",
            )
        if len(data) > max(_SMALL, MOST_TIMES * packed):
            raise CellsError(
                f"{packed} bytes unpack to more than {MOST_TIMES} times as much; output of a cell never does",
                where=str(path),
                next_step="if the file is output of a cell, unpack it and give the unpacked file",
            )
    return bytes(data)


def cell_of(path: Path) -> str:
    """Return the cell that a file's name contains: the part that ExaWatcher writes, else the name without suffix."""
    match = _EXAWATCHER.fullmatch(path.name)
    return match["cell"] if match else path.stem
