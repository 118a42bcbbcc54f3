"""What a training plan needs, and which plan suits a cluster best.

`requests` reads a plan, of which `fields` and `attention_kernels` are parts, `results` is what comes out, `estimate`
answers what it holds, moves and takes, `remarks` says what that stands on, `search` looks for the best plan in a
`space` that `asking` reads, `limits` narrow and `bounds` cut down, `candidates` are what it reports, `validation` holds
the answers to what others measured. `engine` computes for all of them.
"""

from app.theory.planner.asking import SearchRequest, parse_search_request
from app.theory.planner.candidates import Candidate, SearchResult
from app.theory.planner.estimate import estimate, fewest_ranks, outcome
from app.theory.planner.explaining import Step, Term, next_bottleneck, one_step_away, terms
from app.theory.planner.fields import Overlap, PlanParallel, PlanTraining
from app.theory.planner.flags import flags_of
from app.theory.planner.front import Point, front
from app.theory.planner.limits import Axes, Bound
from app.theory.planner.model_flags import Flags
from app.theory.planner.requests import (
    Cluster,
    EstimateRequest,
    Measured,
    ParameterCount,
    parse_estimate_request,
)
from app.theory.planner.results import (
    CollectiveEstimate,
    Estimate,
    MemoryBytes,
    MemoryEstimate,
    Outcome,
    PipelineEstimate,
    StageMemoryEstimate,
    TimeEstimate,
)
from app.theory.planner.search import search
from app.theory.planner.software import SOFTWARE, Profile
from app.theory.planner.ties import choices_of, is_tie, tie_pairs, tie_share
from app.theory.planner.validation import Comparison, Prediction, Summary, compare, predict, summarise

__all__ = [
    "SOFTWARE",
    "Axes",
    "Bound",
    "Candidate",
    "Cluster",
    "CollectiveEstimate",
    "Comparison",
    "Estimate",
    "EstimateRequest",
    "Flags",
    "Measured",
    "MemoryBytes",
    "MemoryEstimate",
    "Outcome",
    "Overlap",
    "ParameterCount",
    "PipelineEstimate",
    "PlanParallel",
    "PlanTraining",
    "Point",
    "Prediction",
    "Profile",
    "SearchRequest",
    "SearchResult",
    "StageMemoryEstimate",
    "Step",
    "Summary",
    "Term",
    "TimeEstimate",
    "choices_of",
    "compare",
    "estimate",
    "fewest_ranks",
    "flags_of",
    "front",
    "is_tie",
    "next_bottleneck",
    "one_step_away",
    "outcome",
    "parse_estimate_request",
    "parse_search_request",
    "predict",
    "search",
    "summarise",
    "terms",
    "tie_pairs",
    "tie_share",
]
