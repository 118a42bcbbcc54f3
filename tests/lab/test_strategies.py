"""The grid of strategies says what is tested and nothing besides."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

from app.lab.matrix import FEATURES, Cell, find, lines
from labs.spec import SUPPORT, SpecError, parse_run_spec

CELLS = [cell for line in lines() for cell in line.cells if cell]
FIRST_PAGE_BYTES = 150_000


def test_every_tested_layout_of_every_row_has_a_cell_and_no_cell_claims_more() -> None:
    shown = {(test.row.id, str(layout)) for cell in CELLS for test in cell.tests for layout in test.layouts}
    assert shown == {(row.id, str(layout)) for row in SUPPORT for layout in row.layouts}
    for cell in CELLS:
        assert bool(cell.tests) == (cell.state in ("exact", "close")), cell.title
        assert not cell.tests or cell.tests[0].row.is_exact == (cell.state == "exact"), cell.title


@pytest.mark.parametrize("state", ["exact", "close", "untested"])
def test_what_is_not_refused_can_be_run_as_it_is(state: str) -> None:
    found = [cell for cell in CELLS if cell.state == state]
    assert found
    for cell in found:
        assert parse_run_spec(cell.spec).parallel.world_size <= 8


def test_what_is_refused_says_the_labs_own_reason() -> None:
    refused = [cell for cell in CELLS if cell.state == "refused"]
    assert refused
    for cell in refused:
        with pytest.raises(SpecError) as error:
            parse_run_spec(cell.spec)
        assert tuple(error.value.violations) == cell.violations
    lamb = find("zero-2", "lars-lamb")
    assert isinstance(lamb, Cell)
    assert "the norm of every whole tensor" in lamb.violations[0].message


def test_schedules_are_for_pipelines() -> None:
    schedules = {at for at, feature in enumerate(FEATURES) if feature.group == "Schedule"}
    for line in lines():
        assert all((line.cells[at] is not None) == ("pipeline" in line.axes) for at in schedules)


def test_the_page_opens_at_its_address_and_gives_a_cells_words_alone(client: TestClient) -> None:
    html = client.get("/lab/strategies?axes=zero-3-tensor&feature=experts&show=refused&find=tensor,+4+ranks").text
    assert len(html.encode()) < FIRST_PAGE_BYTES
    assert "ZeRO-3, tensor: experts" in html
    assert 'data-show="refused" aria-current="true"' in html
    shown = re.findall(r'<tr data-line="([^"]*)">', html)
    assert "ddp, tensor 4 ranks" in shown
    assert all("tensor" in line and "4" in line for line in shown)
    part = client.get("/lab/strategies?axes=ddp&feature=sgd", headers={"HX-Request": "true"}).text
    assert "SGD with momentum (DDP)" in part
    assert '<table class="matrix"' not in part


def test_an_address_of_no_cell_opens_on_the_first(client: TestClient) -> None:
    assert "DDP: plain, fp32" in client.get("/lab/strategies?axes=nowhere&feature=none").text
