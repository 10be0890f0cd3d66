"""Every number that a command accepts has a lower and an upper limit and cannot be `nan`."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError, StatsError, TraceError
from dbdyno.base.limits import COUNT_MOST, Count, Number
from dbdyno.cli.main import cli
from dbdyno.cli.probe.redo import parse_size, parse_time
from dbdyno.stats.correlation import prob_r_log10
from dbdyno.study.plan.durations import duration_ns
from dbdyno.trace.units import LONGEST_NS, length_ns


def options(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Every option and argument below a command, with the command's name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below, f"{path} {name}")
    else:
        yield from ((path, one) for one in command.params)


def test_every_number_of_every_command_has_both_limits_and_is_no_nan():
    """`--level nan`, `--threshold nan` and `--timeout nan` were taken: nan is neither below nor above a limit."""
    seen = 0
    for command, one in options(cli):
        kind, where = one.type, f"{command} {one.opts}"
        assert not isinstance(kind, click.FloatRange) or isinstance(kind, Number), f"{where}: use limits.Number"
        plain = type(kind) in (click.types.IntParamType, click.types.FloatParamType)
        assert not plain or where == " stats prob-r ['r']", f"{where}: give it limits"
        if isinstance(kind, (click.IntRange, click.FloatRange)) and not getattr(one, "is_flag", False):
            seen += 1
            assert kind.min is not None and kind.max is not None, f"{where}: needs both limits"
    assert seen > 50


@pytest.mark.parametrize("text", ["nan", "-nan", "inf", "1e400", "10.5"])
def test_a_number_out_of_its_limits_is_refused_with_them(text: str):
    with pytest.raises(click.BadParameter, match=r"range 0<x<=10"):
        Number(0, 10, min_open=True).convert(text, None, None)


def test_a_count_is_refused_with_its_limits_in_words():
    assert Count().convert(str(COUNT_MOST), None, None) == COUNT_MOST
    for text in ("0", str(COUNT_MOST + 1), "9" * 30):
        with pytest.raises(click.BadParameter, match=r"is not in the range 1 to 1,000,000,000"):
            Count().convert(text, None, None)
    with pytest.raises(click.BadParameter, match="not a valid integer"):
        Count().convert("many", None, None)
    done = dbdyno("trace", "report", "--help")
    assert "x>=1]" in done.stdout and "1000000000" not in done.stdout


@pytest.mark.parametrize("text", ["99999999h", "9" * 400 + "s", "0s", "0.1ns"])
def test_a_length_of_time_fits_on_the_clocks_of_evidence(text: str):
    """`trace timeline --every 99999999h` ended in DuckDB, `9...9s` in Python's conversion of infinity."""
    with pytest.raises(TraceError, match="out of range") as told:
        length_ns(text, "--every")
    assert told.value.where == "--every" and told.value.next_step
    assert length_ns("87600h", "--every") == LONGEST_NS


def test_times_and_sizes_of_the_probes_fit_into_the_core():
    """`probe flash --for 99999999h` was an internal error."""
    for read in (parse_time, parse_size):
        for text in ("99999999999h", "9" * 400 + "s", "99999999999999GiB"):
            with pytest.raises(click.BadParameter):
                read(text)
    assert duration_ns("9" * 400 + "s") is None


def test_a_device_has_terabytes():
    """`probe flash --file-size 1TiB` was no size."""
    assert [parse_size(text) for text in ("1TiB", "2tb", "1.5T")] == [2**40, 2 * 10**12, 3 * 2**39]


def test_more_pairs_than_there_can_be_are_refused():
    with pytest.raises(StatsError, match="is not defined"):
        prob_r_log10(0.5, 2**63)


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "summary", "x.csv", "--level", "nan"),
        ("cells", "show", "-H", "nowhere", "--timeout", "nan"),
        ("compare", "a", "b", "--threshold", "nan"),
        ("trace", "tree", __file__, "--share", "nan"),
        ("snap", "take", "--target", "host=nowhere.invalid", "--lock-timeout", "nan"),
    ],
)
def test_nan_is_refused_where_the_option_stands(words: tuple[str, ...]):
    done = dbdyno(*words)
    assert done.returncode == 2
    assert "nan is not in the range" in done.stderr


def test_a_budget_of_tune_is_a_time_that_can_pass(tmp_path):
    from dbdyno.cli.tune import _seconds

    for text in ("0s", "nan", "-1s", "9" * 400 + "h"):
        with pytest.raises(PlanError, match="is not a time"):
            _seconds(text)
