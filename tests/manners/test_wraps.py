"""Docstring paragraphs are wrapped at the full line length."""

from __future__ import annotations

import pytest
import wraps
from sources import PYTHON, ROOT, text

pytestmark = pytest.mark.sources

EDITED = '''"""Load rows.

A load that was interrupted between the last row and the
commit
has no known outcome.
"""
'''

KEPT = '''"""Read a file.

    SELECT 1
    FROM t

The forms are:

- one
- two
Short lines end a sentence.
The next sentence may begin a line.
"""


def read(path):
    """Read it.

    \\b
    dbdyno sql a
    dbdyno sql b

    Args:
        path: file, which is long enough to be described by two
            lines.
    """
'''


def test_a_line_that_ends_early_in_a_sentence_is_found():
    assert wraps.broken(EDITED) == [3, 4]


def test_its_paragraph_is_wrapped_again():
    assert wraps.mended(EDITED).splitlines()[2:] == [
        "A load that was interrupted between the last row and the commit has no known outcome.",
        '"""',
    ]


def test_code_lists_commands_and_whole_sentences_are_left():
    assert wraps.broken(KEPT) == []
    assert wraps.mended(KEPT) == KEPT


def test_no_docstring_has_such_a_line():
    found = [f"{path.relative_to(ROOT)}:{line}" for path in PYTHON for line in wraps.broken(text(path))]
    assert found == [], "python tests/manners/wraps.py FILES wraps them"
