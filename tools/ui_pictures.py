"""The five pictures of docs/how-to/ui.md, by a Chromium on the planted day.

    python tools/ui_pictures.py target/demo-ui

The folder is made by `make demo-ui`, or by `python tests/ui/planted_day.py FOLDER`.
Only the pictures are written.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import chromium  # noqa: E402 - of the tests

DAY = "2026-11-26T"
WINDOW = f"window={DAY}00:00:00..2026-11-27T00:00:00"
WIDTH = 1180
HEIGHT = 900
TALL = 1380
PATIENCE_S = 120.0
VIEWS = {
    "1-home": ("/", "", HEIGHT),
    "2-dropped-index": (f"/server?{WINDOW}&stretch={DAY}09:55:00..{DAY}10:30:00&by=statement", "", TALL),
    "3-plans": (f"/statement?id=1001&stretch={DAY}09:55:00..{DAY}10:30:00", "s-trees", HEIGHT),
    "4-blocking": (f"/blocking?window={DAY}13:50:00..{DAY}14:20:00&stretch={DAY}14:03:00..{DAY}14:11:00", "", TALL),
    "5-release": (f"/periods?stretch={DAY}16:30:00..{DAY}17:30:00&against=yesterday", "", HEIGHT),
}
"""The addresses, the part of the page that is scrolled to, and the height of the window."""


def main() -> int:
    """Make the pictures."""
    folder = Path(sys.argv[1])
    words = ["ui", "--runs", folder / "runs", "--store", folder / "snaps", "--port", "0", "--no-browser"]
    command = [sys.executable, "-m", "dbdyno", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, chromium.Browser() as browser:
        assert server.stdout
        base, _, token = server.stdout.readline().strip().partition("/?token=")
        try:
            for name, (path, part, height) in VIEWS.items():
                address = f"{base}{path}{'&' if '?' in path else '?'}token={token}"
                picture(browser.open(address, width=WIDTH, height=height), part, name)
        finally:
            server.terminate()
    return 0


def picture(page: chromium.Page, part: str, name: str) -> None:
    """Write the picture of a page when all of it has been read."""
    deadline = time.monotonic() + PATIENCE_S
    while page.evaluate("!!document.querySelector('[aria-busy]')") and time.monotonic() < deadline:
        time.sleep(0.1)
    if part:
        page.evaluate(f"document.getElementById('{part}').scrollIntoView({{behavior: 'instant'}})")
    page.settle()
    answer = page.call("Page.captureScreenshot", format="webp", quality=80)
    path = ROOT / "docs" / "figures" / f"ui-{name}.webp"
    path.write_bytes(base64.b64decode(answer["data"]))
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    sys.exit(main())
