"""The physics of training as pure functions: plain SI floats in and out, the unit in every name.

No session, no clock, no settings. `pipeline`, `collectives`, `planner` and `lab_runs` are rooms with one door each;
`formulas` registers them by number, where content, the derivation popover and the API find them. The modules beside
them are the closed forms of one thing each: state, activations, hardware, number formats and so on.

What a notebook or another program may import is here: plans and searches in, typed records out.
"""

from app.theory.planner import (
    Candidate,
    Estimate,
    EstimateRequest,
    SearchRequest,
    SearchResult,
    estimate,
    parse_estimate_request,
    parse_search_request,
    search,
)

__all__ = [
    "Candidate",
    "Estimate",
    "EstimateRequest",
    "SearchRequest",
    "SearchResult",
    "estimate",
    "parse_estimate_request",
    "parse_search_request",
    "search",
]
