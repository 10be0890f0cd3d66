"""Text from a server, a file or a trace never reaches a terminal as a control sequence, whichever command shows it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from command_line import on_a_terminal
from dbdyno.base import escaping
from dbdyno.evidence.run import new_run
from dbdyno.report import console
from dbdyno.report.tabular import escape_formula

TITLE = "\x1b]0;taken\x07"
HIDE = "\x1b[2K\x1b[1A\x1b[8m\x9b31m\u202e\u200b\r"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Write a run whose title would take control of the terminal, and files with such names; return the folder."""
    run = new_run(tmp_path / "runs", "x", {"title": f"a{TITLE}{HIDE}b", "kind": f"k{TITLE}"})
    run.save(status="aborted")
    (tmp_path / f"p{TITLE}.toml").write_text(f'title = "{chr(0x1B)}"\n')
    (tmp_path / "t.trc").write_text(
        f"*** MODULE NAME:({TITLE}{HIDE}) 2026-01-01 00:00:00.000\nPARSE #1:c=0,e=1,{TITLE}\n"
    )
    (tmp_path / "n.csv").write_text(f"a{TITLE},b\n1,{TITLE}\n2,x\n")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("runs",),
        ("runs", "--format", "csv"),
        ("report", f"no{TITLE}{HIDE}"),
        ("sql", "select 1", "--run", f"no{TITLE}"),
        ("run", f"p{TITLE}.toml"),
        ("plan", "check", f"p{TITLE}.toml"),
        ("trace", "profile", "t.trc"),
        ("trace", "check", "t.trc"),
        ("stats", "summary", "n.csv"),
        ("model", "show", f"{TITLE}"),
        ("cells", "run", "--hosts", f"a{TITLE}", "list cell"),
        ("snap", "list", "--store", f"x{TITLE}"),
        ("doctor", "--target", f"postgresql://127.0.0.1:1/{TITLE}"),
    ],
    ids=lambda words: " ".join(words[:2]).encode("unicode_escape").decode(),
)
def test_no_command_lets_foreign_text_rule_the_terminal(hostile: Path, words: tuple[str, ...]) -> None:
    shown = on_a_terminal(*words, cwd=hostile, COLUMNS="200")
    assert b"\x1b]" not in shown
    assert b"\x07" not in shown
    for part in ("\x1b[2K", "\x1b[1A", "\x1b[8m", "\x9b", "\u202e"):
        assert part.encode() not in shown


def test_a_title_is_shown_by_what_it_is_made_of(hostile: Path) -> None:
    assert rb"\x1b]0;taken\x07" in on_a_terminal("runs", cwd=hostile, COLUMNS="200")


def test_data_in_a_pipe_stays_exact(tmp_path: Path) -> None:
    out = io.StringIO()
    stream = escaping.EscapingStream(out)
    stream.write(f"a{TITLE}")
    escaping.unwrap_stream(stream).write("\x1b[1m")  # type: ignore[arg-type]
    assert out.getvalue() == "a\\x1b]0;taken\\x07\x1b[1m"


def test_a_page_in_colour_has_our_colours_and_nobody_elses() -> None:
    text = console.render_text(
        lambda page: page.print(console.plain_text(f"x\x1b[31m{TITLE}", "bold")), width=80, color=True
    )
    assert text == "\x1b[1mx\\x1b[31m\\x1b]0;taken\x1b[0m\n"


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "=cmd|' /C calc'!A0"])
def test_text_that_a_spreadsheet_would_work_out_is_marked(text: str) -> None:
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-1", "+2.5", "-1e-9", ".5", "a=b", "", -1, 2.5, None])
def test_numbers_and_plain_text_stay(value: object) -> None:
    assert escape_formula(value) == value
