"""Desk for runs on models: `dbdyno` as a user runs it, in its own folder, without an engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from command_line import dbdyno
from mock_plans import model_plan

ENVIRONMENT = {"COLUMNS": "120", "NO_COLOR": "1"}


class Desk:
    """Run `dbdyno` in its own folder; needs no engine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = dbdyno(*arguments, cwd=self.folder, **ENVIRONMENT)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def plan(self, blocks: int = 5, transactions: int = 300) -> str:
        (self.folder / "p.toml").write_text(model_plan(blocks=blocks, transactions=transactions))
        return "p.toml"

    def run(self, at: int = -1) -> Path:
        # Two runs of one second have names in no order.
        runs = (self.folder / "runs").iterdir()
        return sorted(runs, key=lambda run: (run / "manifest.json").stat().st_mtime_ns)[at]

    def sql(self, query: str, run: str = "last") -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(self("sql", query, "--run", run, "--format", "json").stdout)
        return found
