"""Pages of runs in tests: always prepared, but written as HTML only if a test looks at them.

In these folders a run is one step of most tests. A third of the test process's work for a small run is to draw and
write its page, which nobody opens.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

FOLDERS = ("advise", "builds", "cells", "device", "hosts", "lab", "probe", "rehearse", "study")


@pytest.fixture
def html_page() -> None:
    """Request the HTML of a run's page, for a test that looks at it."""


@pytest.fixture(autouse=True)
def unread_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Write the head of the page instead of its HTML, unless the test looks at it."""
    if request.path.parent.name not in FOLDERS or "html_page" in request.fixturenames:
        yield
        return
    from dbdyno.pages import page_of
    from dbdyno.report import html

    with mock.patch.object(html, "render_html", lambda given: str(page_of(given).head)):
        yield
