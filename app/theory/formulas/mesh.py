"""How GPUs are divided among the axes of parallelism, and where a rank stands."""

from __future__ import annotations

from app.theory import mesh
from app.theory.formulas.latex import over
from app.theory.formulas.registry import Formula, Input
from app.theory.formulas.shared import Inputs, by_case, plain
from app.units import latex_number

_MEGATRON = "Narayanan et al. 2021 (Megatron-LM), section 3"


def _axis(name: str, label: str, symbol: str, maximum: float = 1e5) -> Input:
    return Input(name, label, symbol, minimum=1, maximum=maximum, integer=True, default=1)


AXES = (
    _axis("tensor", "Tensor-parallel ranks", "t"),
    _axis("context", "Context-parallel ranks", "c"),
    _axis("data", "Data-parallel ranks", "K", 1e6),
    _axis("pipeline", "Pipeline stages", "p"),
)

AXIS = Input("axis", "Axis", "", choices=mesh.AXES, default="tensor")

_SYMBOLS = {"tensor": "t", "context": "c", "data": "K", "pipeline": "p"}


def _groups_latex(inputs: Inputs) -> tuple[str, str]:
    others = [axis for axis in mesh.AXES if axis != inputs["axis"]]
    return r"\,".join(_SYMBOLS[axis] for axis in others), r" \times ".join(f"{{{axis}}}" for axis in others)


def _coordinate_latex(inputs: Inputs) -> tuple[str, str]:
    axis = inputs["axis"]
    faster = mesh.AXES[: mesh.AXES.index(axis)]
    symbols = over("r", r"\,".join(_SYMBOLS[each] for each in faster) or "1")
    values = over(latex_number(inputs["rank"]), r" \times ".join(latex_number(inputs[each]) for each in faster) or "1")
    return (
        rf"\left\lfloor{symbols}\right\rfloor \bmod {_SYMBOLS[axis]}",
        rf"\left\lfloor{values}\right\rfloor \bmod {latex_number(inputs[axis])}",
    )


ENTRIES: tuple[Formula, ...] = (
    Formula(
        "F26",
        "mesh_gpus",
        "GPUs of a parallel layout",
        mesh.world_size,
        AXES,
        "count",
        "GPUs",
        plain(r"t\,c\,K\,p", r"{tensor} \times {context} \times {data} \times {pipeline}"),
        _MEGATRON,
        "Expert parallelism reuses the data-parallel ranks.",
        example={"tensor": 8, "pipeline": 4, "data": 8},
    ),
    Formula(
        "F26",
        "mesh_groups",
        "Groups along one axis",
        mesh.group_count,
        (*AXES, AXIS),
        "count",
        "",
        by_case(_groups_latex),
        _MEGATRON,
        "The product of the other axes: one group for each of their coordinates.",
        example={"tensor": 8, "pipeline": 4, "data": 8, "axis": "tensor"},
    ),
    Formula(
        "F26",
        "mesh_coordinate",
        "A rank's place on one axis",
        mesh.coordinate,
        (*AXES, AXIS, Input("rank", "Rank, from 0", "r", minimum=0, maximum=1e9, integer=True)),
        "count",
        "",
        _coordinate_latex,
        _MEGATRON,
        "Tensor fastest, then context, data, pipeline: tensor-parallel ranks share a node. Programs may differ.",
        example={"tensor": 8, "pipeline": 4, "data": 8, "axis": "tensor", "rank": 100},
    ),
)
