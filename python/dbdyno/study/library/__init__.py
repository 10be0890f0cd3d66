"""The built-in studies, one file each; a new study needs an entry in this list only."""

from __future__ import annotations

import difflib

from dbdyno.base.errors import PlanError
from dbdyno.study.library import (
    batch_split,
    bind_variables,
    buffer_cache,
    builds,
    checksum,
    data_growth,
    drivers,
    fetch_size,
    flash_log,
    flash_log_tail,
    flash_primer,
    flow_order,
    gather_statistics,
    hit_ratio,
    insert_size,
    keep_cache,
    key_lookup,
    loader,
    queue_depth,
    redo_block_size,
    redo_device,
    redo_size,
    temp_device,
    threads,
    wide_loader,
    write_back_cache,
)
from dbdyno.study.plan.study import Study

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        redo_size,
        redo_device,
        redo_block_size,
        flash_log,
        flash_log_tail,
        write_back_cache,
        flash_primer,
        queue_depth,
        hit_ratio,
        threads,
        builds,
        insert_size,
        loader,
        checksum,
        buffer_cache,
        key_lookup,
        keep_cache,
        data_growth,
        gather_statistics,
        batch_split,
        temp_device,
        bind_variables,
        fetch_size,
        drivers,
        flow_order,
        wide_loader,
    )
}
"""The built-in studies by name."""


def find_study(name: str) -> Study:
    """Return the study with this name.

    Raises:
        PlanError: There is no such study; the error suggests the most similar name.
    """
    if name in STUDIES:
        return STUDIES[name]
    near = difflib.get_close_matches(name, STUDIES, 1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise PlanError(
        f"no study {name!r} and no plan file with that name",
        next_step=f"{hint}list the studies with `dbdyno studies`, or write a plan with `dbdyno plan new`",
    )
