"""The built-in studies: one file each; adding one touches this list only."""

from __future__ import annotations

import difflib

from dbdyno.errors import PlanError
from dbdyno.study.library import hit_ratio, redo_size
from dbdyno.study.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (redo_size.STUDY, hit_ratio.STUDY)}


def find_study(name: str) -> Study:
    """The study of that name; raises `PlanError` with the nearest one."""
    if name in STUDIES:
        return STUDIES[name]
    near = difflib.get_close_matches(name, STUDIES, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise PlanError(
        f"no study {name!r} and no plan file of that name",
        next_step=f"{hint}`dbdyno studies` lists the studies; `dbdyno plan new` writes a plan",
    )
