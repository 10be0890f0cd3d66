"""Names, texts and errors that an outsider chose are shown as text in every view, and never run."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from urllib.parse import quote

import pytest
from asking import Browser, Seen, is_tame
from laboratory import HOSTILE

STRETCH = "stretch=2026-11-26T14:03..2026-11-26T14:08"
pytestmark = pytest.mark.drawn(drawn=False)
VIEWS = (
    "/",
    "/server",
    *(f"/server?by={by}&{STRETCH}" for by in ("statement", "user", "database", "application", "session")),
    f"/server?where={quote('application=web' + HOSTILE)}&{STRETCH}",
    f"/report?{STRETCH}",
    f"/report?{STRETCH}&brief=1&part=1",
    f"/statement?id=1002&{STRETCH}",
    f"/blocking?{STRETCH}",
    "/periods?stretch=2026-11-26T14:05..2026-11-26T14:08&against=2026-11-26T14:03..2026-11-26T14:05",
    "/search?q=img",
    f"/search?q={quote(HOSTILE)}",
)


@pytest.mark.parametrize("address", VIEWS)
def test_hostile_names_of_a_server_are_words(hostile: Browser, address: str) -> None:
    answer = hostile.get(address)
    assert answer.status == 200
    is_tame(answer.text)
    assert "<img" not in answer.text and "\u202e" not in answer.text and "\x1b" not in answer.text


@pytest.mark.soak
def test_hostile_values_of_an_address_are_words(hostile: Browser) -> None:
    for name in (
        "store",
        "target",
        "stretch",
        "window",
        "by",
        "id",
        "format",
        "a",
        "b",
        "job",
        "run",
        "against",
        "q",
        "kind",
    ):
        for path in (
            "/",
            "/runs",
            "/run",
            "/server",
            "/statement",
            "/compare",
            "/periods",
            "/search",
            "/sql",
            "/" + quote(HOSTILE),
        ):
            answer = hostile.get(f"{path}?{name}={quote(HOSTILE)}")
            assert answer.status in (200, 404), (path, name)
            is_tame(answer.text)
            assert "<img" not in answer.text


def test_a_hostile_run_is_words_in_lists_and_errors(tmp_path: Path) -> None:
    run = tmp_path / "runs" / ("x" + HOSTILE.replace("/", "").replace("\x00", ""))
    run.mkdir(parents=True)
    verdict = {"headline": HOSTILE, "decision": HOSTILE, "word": HOSTILE}
    manifest = {
        "schema": 1,
        "kind": HOSTILE,
        "title": HOSTILE,
        "status": "complete",
        "started_at": HOSTILE,
        "verdict": verdict,
    }
    (run / "manifest.json").write_text(json.dumps(manifest))
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    for address in (
        "/",
        "/runs",
        f"/runs?kind={quote(HOSTILE)}",
        "/search?q=img",
        f"/run?id={quote(run.name)}",
        "/compare",
    ):
        answer = there.get(address)
        is_tame(answer.text)
        assert "<img" not in answer.text
    assert "onerror" in Seen(there.get("/runs").text).words


def test_a_hostile_analysis_is_words(tmp_path: Path) -> None:
    """The models of the tests of reports, through the frame of the pages."""
    import sys

    sys.path.append(str(Path(__file__).parents[1] / "report"))
    import report_models

    from dbdyno.pages import page_of
    from dbdyno.ui import rendering
    from dbdyno.ui.view import View

    model = report_models.hostile()
    view = View(page_of(model), model=model, command=HOSTILE, trail=((HOSTILE, "/"),))
    page = rendering.render(view, rendering.Frame(HOSTILE, {}, "/search", HOSTILE, True, UTC))
    is_tame(page)
    assert "<img" not in page
