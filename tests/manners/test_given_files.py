"""Files that a user names: an endless file, or one nested without limit, soon gives an error."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.files import USER_FILE_MOST, read_user_file, toml_tables

KINDS = {
    "plan": ("plan", "check"),
    "machine": ("model", "check"),
    "stack": ("advise",),
    "fleet": ("snap", "watch"),
    "rules": ("snap", "watch", "--target", "host=nowhere.invalid", "--alert"),
    "recipe": ("trace", "profile", "examples/orders.trc", "--recipe"),
    "power cuts": ("device", "cut"),
}
TEXTS = {"lists": "a=" + "[" * 200_000, "keys": "a." * 3000 + "b=1", "inline": "a=" + "{b=" * 20_000 + "1"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_nested_too_deeply_is_no_toml(kind: str, text: str, tmp_path: Path):
    """`plan check` called it an internal error."""
    file = tmp_path / "given.toml"
    file.write_text(f'title = "t"\n{TEXTS[text]}\n')
    done = dbdyno(*KINDS[kind], file, cwd=ROOT)
    assert done.returncode == 2
    assert "given.toml" in done.stderr
    assert "internal error" not in done.stderr


def test_nesting_that_a_person_writes_is_read():
    assert toml_tables("a = " + "[" * 20 + "]" * 20)
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_tables("a = " + "[" * 20)


def test_a_file_of_data_in_place_of_a_plan_is_refused_by_its_length(tmp_path: Path):
    file = tmp_path / "data"
    file.write_text("#" * (USER_FILE_MOST + 1))
    with pytest.raises(OSError, match="16 million characters") as told:
        read_user_file(file)
    assert told.value.errno == errno.EFBIG
    file.write_text("a\r\nb")
    assert read_user_file(file) == "a\nb"


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


@pytest.mark.parametrize("words", [("plan", "check"), ("cells", "script", "-H", "c1")])
def test_a_device_without_an_end_is_no_file_of_text(words: tuple[str, ...]):
    """`plan check /dev/zero` read on, deaf to the first signal, until the memory was full."""
    command = [sys.executable, "-m", "dbdyno", *words, "/dev/zero"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, preexec_fn=bounded)
    assert done.returncode == 2, done.stderr
    assert "/dev/zero" in done.stderr and "16 million characters" in done.stderr
