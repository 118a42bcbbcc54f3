"""The shared vocabulary: what a model, a training step and a parallel layout are, and what can be asked of a run.

Torch-free, so that the web application and the worker may import it.
"""

from labs.spec.checking import check_run_spec, parse_run_spec
from labs.spec.families import SUPPORT
from labs.spec.families.row import EXACT, Row
from labs.spec.limits import MAX_RUN_PARAMETERS
from labs.spec.programs import (
    PROGRAMS,
    AutogradOptions,
    CollectivesOptions,
    FailuresOptions,
    Figure,
    FormatsOptions,
    Options,
    Quantity,
    ScalingOptions,
    ScheduleOptions,
)
from labs.spec.reading import parse, violation_of
from labs.spec.run import LAB_MODELS, LARGE_MODELS, Compression, Fault, Link, Probe, RunSpec, RunTraining
from labs.spec.schedules import (
    SCHEDULE_RULES,
    V_SHAPED,
    Schedule,
    ScheduleFields,
    ScheduleRule,
    multiples_near,
    schedule_violations,
    unscheduled_violations,
)
from labs.spec.shapes import check_model, nearest_divisors
from labs.spec.violations import SpecError, Violation
from labs.spec.vocabulary import (
    BUCKET_BYTES,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_WORLD_SIZE,
    Attention,
    Count,
    LatentAttention,
    Model,
    Offload,
    Optimizer,
    Parallel,
    Precision,
    Program,
    Recompute,
    StateLayout,
    Strict,
    Training,
)

__all__ = [
    "BUCKET_BYTES",
    "EXACT",
    "LAB_MODELS",
    "LARGE_MODELS",
    "MAX_HEADS",
    "MAX_HIDDEN",
    "MAX_RUN_PARAMETERS",
    "MAX_WORLD_SIZE",
    "PROGRAMS",
    "SCHEDULE_RULES",
    "SUPPORT",
    "V_SHAPED",
    "Attention",
    "AutogradOptions",
    "CollectivesOptions",
    "Compression",
    "Count",
    "FailuresOptions",
    "Fault",
    "Figure",
    "FormatsOptions",
    "LatentAttention",
    "Link",
    "Model",
    "Offload",
    "Optimizer",
    "Options",
    "Parallel",
    "Precision",
    "Probe",
    "Program",
    "Quantity",
    "Recompute",
    "Row",
    "RunSpec",
    "RunTraining",
    "ScalingOptions",
    "Schedule",
    "ScheduleFields",
    "ScheduleOptions",
    "ScheduleRule",
    "SpecError",
    "StateLayout",
    "Strict",
    "Training",
    "Violation",
    "check_model",
    "check_run_spec",
    "multiples_near",
    "nearest_divisors",
    "parse",
    "parse_run_spec",
    "schedule_violations",
    "unscheduled_violations",
    "violation_of",
]
