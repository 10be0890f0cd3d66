"""Analysis models for the report's tests; see `report_models.py`."""

from __future__ import annotations

import copy
from functools import cache

import pytest
import rendered
from report_model_runs import MODELS

from dbdyno.base.json_types import JsonObject
from soaked import but

REPEATS = ("four_arms", "curve_not_found", "aborted", "hostile_curve", "hostile_two_curves", "hostile_flash_log")
"""Names of models whose kind of page, or whose hostile words, other models have, too."""


@pytest.fixture(autouse=True, scope="session")
def pages_once(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """Keep one folder of rendered pages for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "pages"
    folder.mkdir(exist_ok=True)
    rendered.PLACE[:] = [folder]


@cache
def _model(name: str) -> JsonObject:
    return MODELS[name]()


@pytest.fixture(params=but(MODELS, *REPEATS))
def any_model(request: pytest.FixtureRequest) -> JsonObject:
    """Each of the models in turn."""
    return copy.deepcopy(_model(request.param))


@pytest.fixture
def experiment() -> JsonObject:
    """Return a complete model with two arms."""
    return copy.deepcopy(_model("experiment"))


@pytest.fixture
def curve() -> JsonObject:
    """Commit time over redo size with a sawtooth."""
    return copy.deepcopy(_model("curve"))


@pytest.fixture
def correlation() -> JsonObject:
    """Return a model of statements, with the quantities that their time correlates with."""
    return copy.deepcopy(_model("correlation"))


@pytest.fixture
def hostile() -> JsonObject:
    """Return a model in which every string tries to break out of the page."""
    return copy.deepcopy(_model("hostile"))


@pytest.fixture(params=but(MODELS, *REPEATS))
def any_page(request: pytest.FixtureRequest) -> tuple[JsonObject, str]:
    """Each of the models in turn, with its page."""
    return _model(request.param), rendered.page(_model(request.param))


@pytest.fixture
def experiment_page() -> str:
    """The page of `experiment`."""
    return rendered.page(_model("experiment"))
