"""A terminal session as an SVG, from a real run: `python tools/terminal_picture.py docs/figures/session.svg WORDS...`.

The command runs on a terminal of its own, in a temporary folder; what it writes to stdout is drawn as it stood there.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 100
ROOT = Path(__file__).resolve().parents[1]


def shown(words: list[str]) -> str:
    """What a command writes to a terminal, colours included."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "60"}
    with tempfile.TemporaryDirectory() as folder:
        running = subprocess.Popen(words, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.DEVNULL)
        os.close(theirs)
        parts = []
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 65536):
                parts.append(part)
        running.wait()
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


def main(picture: Path, typed: list[str]) -> None:
    """Runs `dbdyno` with these words, and draws the prompt and the answer."""
    words = [str(ROOT / word) if (ROOT / word).is_file() else word for word in typed]
    answer = shown([str(Path(sys.executable).with_name("dbdyno")), *words])
    console = Console(record=True, width=COLUMNS, force_terminal=True, color_system="truecolor", file=io.StringIO())
    console.print(Text("$ ", "bold green") + Text(f"dbdyno {' '.join(typed)}", "bold"))
    console.print(Text.from_ansi(answer.rstrip()))
    svg = console.export_svg(title="dbdyno")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fonts of the reader's machine, nothing fetched
    picture.write_text(re.sub(r"Fira Code", "ui-monospace, Menlo, Consolas", svg))


main(Path(sys.argv[1]), sys.argv[2:])
