"""What a training plan needs, and which plan suits a cluster best.

`requests` reads a plan, `estimate` answers what it holds, moves and takes, `remarks` says what that stands on, `search`
looks for the best plan, `validation` holds the answers to what others measured. `engine` computes for all of them.
"""

from app.theory.planner.estimate import estimate, fewest_ranks
from app.theory.planner.requests import Cluster, EstimateRequest, ParameterCount, PlanTraining, parse_estimate_request
from app.theory.planner.search import Candidate, Found, SearchRequest, parse_search_request, search
from app.theory.planner.validation import Comparison, Prediction, Summary, compare, predict, summarise

__all__ = [
    "Candidate",
    "Cluster",
    "Comparison",
    "EstimateRequest",
    "Found",
    "ParameterCount",
    "PlanTraining",
    "Prediction",
    "SearchRequest",
    "Summary",
    "compare",
    "estimate",
    "fewest_ranks",
    "parse_estimate_request",
    "parse_search_request",
    "predict",
    "search",
    "summarise",
]
