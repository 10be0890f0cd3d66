"""Every page of the gallery is executed: at a small size by default, and as written in the soak."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from command_line import dbdyno
from dbdyno.report import figures

ROOT = Path(__file__).resolve().parents[2]
INDEX = (ROOT / "docs" / "gallery" / "README.md").read_text()


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "tools" / "gallery.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gallery"] = module  # its dataclass asks for it
    spec.loader.exec_module(module)
    return module


gallery = _tool()
PAGES = gallery.pages()
DIRECT = ("trend", "profile", "timeline")
"""Commands that write their figure under the page's own name."""
SEEDED = [name for name, page in PAGES.items() if page.texts("text") and not page.texts("sql")]


def in_process(words: Sequence[str], folder: Path) -> tuple[int, str]:
    done = dbdyno(*words, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def drawn(picture: Path) -> bool:
    return picture.read_bytes().startswith((b"<svg", b"\x89PNG"))


def test_the_gallery_has_twelve_pages_each_in_the_index_with_its_picture() -> None:
    assert len(PAGES) == 12
    for name, page in PAGES.items():
        assert f"({name}.md)" in INDEX
        assert drawn(page.path.with_name(page.picture))
        assert "**Answer.**" in page.path.read_text()


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_draw_its_picture(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, draw_all = {*PAGES[name].picture.split("."), *DIRECT}, figures.draw_all
    monkeypatch.setattr(
        figures, "draw_all", lambda analysis, look=figures.WIDE, _=None: draw_all(analysis, look, wanted)
    )
    picture, _ = gallery.carry_out(PAGES[name], tmp_path, in_process, small=True)
    assert drawn(picture)


@pytest.mark.soak
@pytest.mark.parametrize("name", SEEDED)
def test_the_commands_of_a_page_print_what_it_says(name: str, tmp_path: Path) -> None:
    page = PAGES[name]
    _, output = gallery.carry_out(page, tmp_path, in_process)
    said = " ".join(output.split())
    assert [line for line in page.printed() if " ".join(line.split()) not in said] == []
