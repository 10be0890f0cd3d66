"""Command that prints the table of docs/reference/analysis.md."""

from __future__ import annotations

import sys

from dbdyno.study.analysis.contract.declarations import table

sys.stdout.write(table() + "\n")
