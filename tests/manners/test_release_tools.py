"""Tools that build and test releases: what they refuse, and (in the soak) how they handle the files in dist/."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import maturin
import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(folder / "tools" / words[0]), *words[1:]], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (("oci-image",), "0 wheels"),
        (("clean-root", "wheel"), "0 files for 'wheel'"),
        (("clean-root", "sdist", "trixie"), "0 files for 'sdist'"),
        (("portable-wheel",), "0 source archives"),
    ],
)
def test_without_a_wheel_or_a_source_the_command_that_makes_it_is_named(
    tmp_path: Path, words: tuple[str, ...], lacks: str
) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    done = tool(tmp_path, *words)
    assert done.returncode == 1
    assert lacks in done.stderr and "make wheel" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("clean-root",), "nothing is neither wheel nor sdist"),
        (("clean-root", "deb"), "deb is neither wheel nor sdist"),
        (("portable-wheel", "sparc"), "sparc is neither aarch64 nor x86_64"),
    ],
)
def test_what_they_do_not_know_is_an_error_of_the_caller(words: tuple[str, ...], said: str) -> None:
    done = tool(ROOT, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_on_musl_the_build_ends_before_it_begins_unless_the_user_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("backend", ROOT / "tools" / "wheel_backend.py")
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(backend := importlib.util.module_from_spec(spec))
    built: list[str] = []
    monkeypatch.setattr(backend, "build_entry", lambda: built.append("entry"))
    monkeypatch.setattr(maturin, "build_wheel", lambda *given: "a wheel")
    assert backend.build_wheel("dist") == "a wheel"
    monkeypatch.setattr(backend.sysconfig, "get_config_var", lambda name: "x86_64-pc-linux-musl")
    for step in (backend.build_wheel, backend.prepare_metadata_for_build_wheel):
        with pytest.raises(RuntimeError, match=r"musl.* DuckDB and vl-convert"):
            step("dist")
    assert built == ["entry"]
    monkeypatch.setenv("DBDYNO_ON_MUSL", "1")
    assert backend.build_wheel("dist") == "a wheel"


@pytest.mark.soak
@pytest.mark.parametrize("what", ["wheel", "sdist"])
def test_what_is_in_dist_is_installed_run_and_uninstalled_and_only_the_key_is_left(what: str) -> None:
    kind = f"*manylinux*{os.uname().machine}.whl" if what == "wheel" else "*.tar.gz"
    missing = [name for name in ("mmdebstrap", "bwrap") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip("a clean root needs root and Debian's packages; apt-get install mmdebstrap bubblewrap")
    if not list((ROOT / "dist").glob(f"dbdyno-0{kind}")):
        pytest.skip(f"no dbdyno-0{kind} is in dist/; make wheel")
    done = tool(ROOT, "clean-root", what)
    assert done.returncode == 0, done.stderr
    said, _, left = done.stdout.partition("installed, run, uninstalled; left:\n")
    assert "complete" in said
    assert [line.strip() for line in left.splitlines() if "dbdyno" in line] == [
        "./root/.local/state/dbdyno",
        "./root/.local/state/dbdyno/key",
    ]
