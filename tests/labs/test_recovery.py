"""A rank is killed, torchrun starts all again, and they go on from a checkpoint as though nothing had happened."""

from __future__ import annotations

import pytest

from labs.spec import SpecError, parse_run_spec
from tests.labs.ranks import spec_of

STEPS = 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parallel", "mode"),
    [({"data": 2, "zero": 1}, "async"), ({"data": 2, "zero": 3}, "sync")],
    ids=["zero-1", "fsdp"],
)
def test_a_killed_rank_costs_no_digit_of_the_losses(run, parallel, mode):
    training = {"steps": STEPS, "checkpoint_every": 2, "checkpoint_mode": mode}
    fault = {"kind": "kill", "rank": 1, "step": 5}
    unbroken = run(spec_of(parallel, training={"steps": STEPS}))
    broken = run(spec_of(parallel, training=training, restarts=1, faults=[fault]))
    assert broken.returncode == 0, broken.stderr
    (said,) = [event["line"] for event in broken.of_kind("log", rank=0) if "going on after step" in event["line"]]
    done = int(said.split("after step ")[1].split(",")[0])
    # an asynchronous save is whole when the next one begins, and perhaps before
    assert done == 4 if mode == "sync" else done in (2, 4)
    assert [event["step"] for event in broken.of_kind("step")] == [1, 2, 3, 4, *range(done + 1, STEPS + 1)]
    last = {event["step"]: event["loss"] for event in broken.of_kind("step")}
    assert list(last.values()) == unbroken.losses()
    assert broken.summary()["first_loss"] == unbroken.losses()[0]
    assert broken.summary()["steps"] == STEPS


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"training": {"checkpoint_mode": "async"}}, "training.checkpoint_mode"),
        ({"training": {"checkpoint_every": 4, "steps": 4}}, "training.checkpoint_every"),
        ({"training": {"checkpoint_every": 2, "offload": "file"}}, "training.offload"),
        ({"training": {"checkpoint_every": 2}, "compression": {"kind": "top-k"}}, "compression.kind"),
        ({"restarts": 4}, "restarts"),
    ],
)
def test_what_a_checkpoint_cannot_hold_is_refused_by_field(asked, field):
    with pytest.raises(SpecError) as refused:
        parse_run_spec(spec_of({"data": 2}, **asked))
    assert field in [each.field for each in refused.value.violations]
