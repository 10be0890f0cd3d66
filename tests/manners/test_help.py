"""`dbdyno help`: topics, the help of commands, and the next step if there is no such topic or command."""

from __future__ import annotations

import pytest

from command_line import dbdyno, succeeded
from dbdyno.cli.help import TOPICS


def test_without_a_word_the_topics_are_listed() -> None:
    listed = dbdyno("help").stdout
    assert all(f"  {name} " in listed for name in TOPICS)


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_fits_a_terminal(name: str) -> None:
    shown = succeeded("help", name)
    assert TOPICS[name][0] in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 110


def test_a_command_shows_its_own_help() -> None:
    assert dbdyno("help", "snap", "report").stdout == dbdyno("snap", "report", "--help").stdout


def test_an_unknown_word_names_the_topics() -> None:
    refused = dbdyno("help", "tagrets")
    assert refused.returncode == 2
    assert "one of the topics targets, times" in refused.stderr
