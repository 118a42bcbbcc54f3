"""A reply that says again what was false in other words, and one that puts it right in words like these."""

from __future__ import annotations

import pytest

from app.content.catalogue import Catalogue
from app.interview.challenging import (
    LEFT_OPEN,
    SAID_AGAIN,
    STILL_WRONG,
    STOOD_BY,
    TAKEN_BACK,
    heard_reply,
    held_in,
)
from tests.support.sat import asked


@pytest.mark.parametrize(
    ("question", "said", "reply", "outcome"),
    [
        (
            "M9.q3",
            "FSDP gathers again in backward because the weights change between forward and backward.",
            "Yes, they are different. Adam has already updated each layer, so FSDP needs the fresh values.",
            STOOD_BY,
        ),
        (
            "M9.q3",
            "It gathers twice because the gradients have to be averaged over the ranks.",
            "Yes, an all gather averages the gradients, backward then uses the averaged ones.",
            STOOD_BY,
        ),
        (
            "M9.q3",
            "It gathers twice because the gradients have to be averaged over the ranks.",
            "Yes, right: the reduce-scatter adds the gradients, and backward multiplies the error by the weights.",
            TAKEN_BACK,
        ),
        (
            "M9.q3",
            "You can set reshard_after_forward=False to skip the second gather, which needs no extra memory.",
            "It still holds its 1,750 MB.",
            STILL_WRONG,
        ),
        (
            "M9.q3",
            "You can set reshard_after_forward=False to skip the second gather, which needs no extra memory.",
            "26 GB, and 1,750 MB of it are its own.",
            TAKEN_BACK,
        ),
        (
            "M5.commit",
            "More micro-batches make the bubble larger.",
            "About half of it, 1.5 %. Each micro-batch adds its own bubble.",
            STILL_WRONG,
        ),
        (
            "M5.commit",
            "The pipeline stages need the most bandwidth of all.",
            "It's the pipeline, because tensor parallelism only sends within a layer.",
            SAID_AGAIN,
        ),
        (
            "M5.commit",
            "The pipeline stages need the most bandwidth of all.",
            "Tensor parallelism, it has to.",
            TAKEN_BACK,
        ),
        ("M5.commit", "The pipeline stages need the most bandwidth of all.", "I would have to look it up.", LEFT_OPEN),
    ],
)
def test_a_reply_that_says_it_again_in_other_words_is_no_taking_back(
    content: Catalogue, question: str, said: str, reply: str, outcome: str
) -> None:
    interview, name = question.split(".")
    part, known = asked(content, interview, name)
    (held,) = held_in(part, said, known)
    assert heard_reply(held.challenge, said, reply, part, known) == outcome
