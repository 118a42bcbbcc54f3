"""The API does what /openapi.json says of it, whatever it is sent: schemathesis draws the requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.settings import Settings
from app.main import create_app
from app.theory.formulas import FORMULAS
from tests.support.judged import judge_next

if TYPE_CHECKING:  # imported where it is used: every process of the tests reads this file, and one runs it
    import schemathesis

EXAMPLES = 16  # of each operation
LONGEST_SECONDS = 5.0  # of computing, whatever else the machine does; these take milliseconds

# What no schema can say (a whole spec, the ids of cards and parts) is drawn in test_bad_requests.py instead.
REFUSED = {
    "GET /api/v1/lab/runs/{run_id}/checkpoint",
    "GET /api/v1/lab/runs/{run_id}/snapshot/{rank}",
    "GET /api/v1/lab/runs/{run_id}/artifacts/{name}",
    "POST /api/v1/estimate",
    "POST /api/v1/search",
    "POST /api/v1/search/front",
    "POST /api/v1/lab/runs",
    "POST /api/v1/lab/sweeps",
    "POST /api/v1/formulas/{key}/evaluate",
    "POST /api/v1/labs/{key}/puzzle/submissions",
    "POST /api/v1/study/check",
    "POST /api/v1/study/reviews",
    "POST /api/v1/study/undo",
    "POST /api/v1/problems/{key}/variants/{seed}/answers",
}


@pytest.fixture
def described(
    sqlite: Database, settings_for: Callable[..., Settings], content: Catalogue
) -> Iterator[schemathesis.BaseSchema]:
    """The application's own description, of an install where something was done already."""
    import schemathesis
    from schemathesis.python import asgi

    app = create_app(settings_for(allowed_hosts=asgi.HOST), sqlite)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for _ in ("waits", "has ended"):
            run = client.post("/api/v1/lab/runs", json={"spec": {"model": "gpt-mini"}})
            assert run.status_code == 201
        assert client.post(f"/api/v1/lab/runs/{run.json()['id']}/cancel").status_code < 300
        seed = client.post("/api/v1/problems/P03/variants").json()["seed"]
        assert client.post("/api/v1/labs/CL01/submissions", json={"code": "x = 1"}).status_code == 201
        judge_next(sqlite)
        schema = schemathesis.openapi.from_asgi("/openapi.json", app)
        schema.hook("flatmap_path_parameters")(_known(content, seed))
        # streams stay open as long as their run waits; tests/lab/test_stream.py reads them
        yield schema.exclude(path_regex="/events$")


def _known(content: Catalogue, seed: int) -> Callable[[Any, Any], st.SearchStrategy[Any]]:
    """What exists, as often as what is made up: nearly everything made up ends in 404."""
    keys = {
        "problems": content.problems,
        "rubrics": content.rubrics,
        "formulas": FORMULAS.by_name,
        "labs": content.labs,
    }

    def choose(context: Any, made_up: Mapping[str, Any] | None) -> st.SearchStrategy[Any]:
        known = {"seed": st.just(seed), "run_id": st.sampled_from((1, 2)), "submission_id": st.just(1)}
        for room, items in keys.items():
            if room in context.operation.path:
                known["key"] = st.sampled_from(sorted(items))
        real = {name: known.get(name, st.just(value)) for name, value in (made_up or {}).items()}
        return st.just(made_up) | st.fixed_dictionaries(real) if made_up else st.just(made_up)

    return choose


def _send(operation: Any) -> Counter[int]:
    """Send what the description allows and hold every reply to it; how often each status came."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    every = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    seen = Counter[int]()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case: schemathesis.Case) -> None:
        began = time.process_time()
        response = case.call()
        assert time.process_time() - began < LONGEST_SECONDS
        seen[response.status_code] += 1
        case.validate_response(response, checks=every)

    send()
    return seen


@pytest.mark.slow
def test_every_reply_is_one_that_was_described(described: schemathesis.BaseSchema) -> None:
    seen = {operation.label: _send(operation) for operation in (each.ok() for each in described.get_all_operations())}
    assert len(seen) > 15
    in_vain = {label for label, statuses in seen.items() if not any(status < 300 for status in statuses)}
    assert in_vain <= REFUSED, "requests that never got through prove little"
