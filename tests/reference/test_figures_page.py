"""Figures to step through, as pages and as what their script fetches."""

from __future__ import annotations

from fastapi.testclient import TestClient


def test_every_figure_has_its_first_frame_without_a_script(client: TestClient) -> None:
    html = client.get("/reference/figures").text
    assert html.count("data-player=") == 4
    assert html.count("<figure") == 4
    assert 'href="/reference/figures"' in client.get("/reference").text


def test_a_figure_opens_as_it_was_asked_for(client: TestClient) -> None:
    html = client.get("/reference/figures/zero?stage=1&ranks=8&at=2").text
    assert "ZeRO-1, one step on 8 ranks" in html
    assert "Step 2 of 14." in html
    assert "stage=1&amp;ranks=8&amp;at=3" in html  # where its arrow leads


def test_the_script_gets_all_frames_and_errors_name_the_field(client: TestClient) -> None:
    reply = client.get("/reference/figures/collective/frames?ranks=3").json()
    assert len(reply["frames"]) == 5
    assert reply["frames"][1]["moves"] == [[0, 1, 0], [1, 2, 1], [2, 0, 2]]
    assert 'data-player="collective"' in reply["html"]
    refused = client.get("/reference/figures/collective/frames?ranks=1", headers={"Accept": "application/json"})
    assert refused.status_code == 422
    assert "2 to 8" in refused.text
    assert client.get("/reference/figures/hexagon").status_code == 404
