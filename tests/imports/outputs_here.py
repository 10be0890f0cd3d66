"""The outputs of benchmark programs that the tests read."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "outputs"
"""Folder of the outputs. Those of pgbench 15, sysbench 1.0.20, hyperfine 1.15 and JMeter 5.6.3 come from the programs
(`written_by_programs.sh`; `jmeter -n -t jmeter.jmx -l jmeter.jtl`), the others to their documentation."""


def outputs() -> list[Path]:
    """Return the paths of all outputs."""
    return sorted(path for path in FOLDER.iterdir() if path.is_file())


def output(name: str) -> Path:
    """Return the path of one output."""
    return FOLDER / name
