"""What a number of a run of one's own is made of, in sentences: no experiment explains it. Pure."""

from __future__ import annotations

from app.lab.terms import tree_of
from app.reveal.meter import Meter
from app.theory.state import LAYOUTS
from app.words import capital, counted, listed
from labs.spec import RunSpec

_AS_THEORY_HAS_IT = 0.005  # of it
_SHARDED_FROM = (("optimizer", 1), ("gradients", 2), ("weights", 3))  # the ZeRO stage from which each is cut


def sentences(meter: Meter, spec: RunSpec, theory: dict[str, object]) -> list[str]:
    """Its terms and their sum, what theory counts, and how a prediction stands to it; none where it was not measured
    or no sum is known."""
    row = meter.row
    if row.measured is None or len(meter.terms) < 2:
        return []
    parts = [f"{row.said(term.value)} of {term.short}" for term in meter.terms if term.value]
    said = [f"{capital(listed(parts))} make {row.said(row.measured)}.", *_of_state(meter, spec, theory)]
    if row.theory:
        apart = abs(row.measured / row.theory - 1)
        said.append(
            "Theory counts the same." if apart < _AS_THEORY_HAS_IT else f"Theory counts {row.said(row.theory)}."
        )
    return [*said, *_of_prediction(meter)]


def _of_state(meter: Meter, spec: RunSpec, theory: dict[str, object]) -> list[str]:
    """The bytes of a parameter, and who holds them, where the model itself is not cut."""
    if tree_of(meter.row.name, spec, theory) is None:
        return []
    layout = LAYOUTS[str(theory["state_layout"])]
    ranks, stage = spec.parallel.data, spec.parallel.zero
    said = f"Each of {counted(int(str(theory['parameters'])), 'parameter')} has {layout.bytes_each} bytes"
    cut = [name for name, least in _SHARDED_FROM if stage >= least]
    if ranks == 1 or not cut:
        return [f"{said}, all of them on {'every' if ranks > 1 else 'the one'} rank."]
    return [f"{said}; of {listed(cut[::-1])} a rank keeps one part in {ranks}."]


def _of_prediction(meter: Meter) -> list[str]:
    row = meter.row
    if row.predicted is None or row.measured is None:
        return []
    if row.is_near:
        return [f"Your {row.text} has all of it."]
    if meter.gap and meter.gap.finding:
        return [f"{meter.gap.finding}: {meter.gap_text}."]
    way = "below" if row.predicted < row.measured else "above"
    apart = row.said(abs(row.measured - row.predicted))
    return [f"Your {row.text} lies {apart} {way} it: no term that was left out, and no slip with a name, makes that."]
