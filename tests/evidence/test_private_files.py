"""Files are written completely, to the named place, and only their owner can read them unless they are to be shared."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base import files
from dbdyno.base.errors import Error, ReportError
from dbdyno.evidence.run import Block, new_run
from dbdyno.evidence.tables import write_table
from dbdyno.report.files import write_whole as write_page

TEXT = b"text"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)
    files.share_new_folders(False)


@pytest.fixture
def link(tmp_path: Path) -> Path:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "link").symlink_to("victim")
    return tmp_path / "link"


def test_a_run_folder_and_all_in_it_is_private(tmp_path: Path) -> None:
    run = new_run(tmp_path / "runs", "x", {})
    run.add_block(Block(0, "measure", 1, 2, 3, []))
    write_table(run.path / "statements.parquet", {"text": ["select 1"]})
    assert {mode(path) for path in (run.path, run.path / "blocks")} == {0o700}
    assert {mode(path) for path in run.path.rglob("*") if path.is_file()} == {0o600}


def test_a_run_folder_that_is_shared_can_be_read_and_not_written_by_others(tmp_path: Path) -> None:
    files.share_new_folders()
    run = new_run(tmp_path / "runs", "x", {})
    run.add_block(Block(0, "measure", 1, 2, 3, []))
    write_table(run.path / "statements.parquet", {"text": ["select 1"]})
    assert {mode(path) for path in (run.path, run.path / "blocks")} == {0o755}
    assert {mode(path) for path in run.path.rglob("*") if path.is_file()} == {0o644}


def test_a_shared_run_is_not_writable_by_the_group_under_any_umask_and_can_be_gone_on_with(tmp_path: Path) -> None:
    os.umask(0o002)
    files.share_new_folders()
    run = new_run(tmp_path / "runs", "x", {})
    run.save(title="again")
    run.add_block(Block(0, "measure", 1, 2, 3, []))
    assert {mode(path) for path in run.path.rglob("*")} == {0o755, 0o644}


def test_a_folder_that_is_opened_later_shares_what_is_written_from_then_on(tmp_path: Path) -> None:
    run = new_run(tmp_path / "runs", "x", {})
    run.path.chmod(0o755)
    run.save(title="again")
    assert mode(run.path / "manifest.json") == 0o644


def test_a_foreseen_temporary_name_leads_nowhere(tmp_path: Path) -> None:
    """The names of the first version, as links that wait."""
    (tmp_path / "victim").write_text("kept")
    for name in ("manifest.json.tmp", ".manifest.json.tmp", ".r.html.tmp", "s.parquet.tmp", f".r.html.{os.getpid()}"):
        (tmp_path / name).symlink_to("victim")
    files.write_atomically(tmp_path / "manifest.json", TEXT, durable=True)
    write_page(tmp_path / "r.html", TEXT)
    write_table(tmp_path / "s.parquet", {"a": ["b"]})
    assert (tmp_path / "victim").read_text() == "kept"
    assert (tmp_path / "r.html").read_bytes() == TEXT


def test_no_code_of_the_package_foresees_the_name_of_what_it_writes_aside() -> None:
    """A process's number is no secret: whoever may write in a shared store would have the link there before us."""
    package = Path(files.__file__).parent
    found = [
        str(path) for path in package.rglob("*.py") if re.search(r"with_(suffix|name)\(.*getpid", path.read_text())
    ]
    assert found == []


def test_a_file_of_a_run_replaces_a_link_in_its_place(link: Path) -> None:
    files.write_atomically(link, TEXT)
    assert not link.is_symlink()
    assert (link.read_bytes(), (link.parent / "victim").read_text()) == (TEXT, "kept")


def test_a_named_file_that_is_a_link_is_refused(link: Path) -> None:
    with pytest.raises(ReportError, match="is a link"):
        write_page(link, TEXT)
    assert (link.parent / "victim").read_text() == "kept"


@pytest.mark.parametrize("words", [("plan", "new"), ("model", "show", "san", "-o")], ids=" ".join)
def test_no_command_writes_through_a_link(link: Path, words: tuple[str, ...]) -> None:
    place = link.rename(link.with_suffix(".json"))
    done = dbdyno(*words, place, cwd=link.parent)
    assert done.returncode == 2
    assert "link" in done.stderr or "exists" in done.stderr, done.stderr
    assert (link.parent / "victim").read_text() == "kept"


def test_a_device_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_output(pipe, TEXT)
    assert os.read(reader, 10) == TEXT
    assert pipe.is_fifo()
    os.close(reader)
    files.write_output(Path("/dev/null"), TEXT)
    assert Path("/dev/null").is_char_device()


def test_what_fails_leaves_nothing_behind_and_what_was_there_stays(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "a").write_text("before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_atomically(tmp_path / "a", TEXT, durable=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_a_key_is_never_readable_by_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    files.write_atomically(tmp_path / "key", TEXT, mode=0o600)
    assert mode(tmp_path / "key") == 0o600


def test_leftovers_of_a_killed_write_go_with_the_next_run(tmp_path: Path) -> None:
    run = new_run(tmp_path, "x", {})
    (run.path / ".manifest.json.0123456789abcdef.tmp").write_text("half")
    run.drop_leftovers()
    assert [path.name for path in run.path.iterdir()] == ["manifest.json"]


def test_an_error_of_writing_names_a_safe_next_step(tmp_path: Path, link: Path) -> None:
    from dbdyno.cli.output import write_text

    with pytest.raises(Error) as caught:
        write_text(link, "x")
    assert "leave -o out" in str(caught.value)
