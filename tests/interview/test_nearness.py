"""What may be about a point, in whatever words."""

from __future__ import annotations

from app.content.catalogue import Catalogue
from app.interview.drawing import draw, values_of
from app.interview.nearness import subjects_of
from app.interview.parts import known_to, parts_of
from app.interview.questions import right_answer


def test_what_is_said_in_new_words_is_near_and_another_subject_is_not(content: Catalogue) -> None:
    interview = content.interviews["M5"]
    values, answers = values_of(interview, draw(interview, 3)), dict[str, str]()
    for part in parts_of(interview):
        answers[part.id] = "words" if part.kind == "text" else right_answer(part, values, answers)
    part = next(each for each in parts_of(interview) if each.id == "commit")
    known = known_to(part, values, answers)
    assert known is not None
    subjects = subjects_of(part, known)
    instead = "What I'd do instead is tensor 8 and no pipeline, the moment the measured bubble is above 15 percent."
    assert subjects.is_near("alternative", instead)
    assert not subjects.is_near("recovery", instead)
    assert subjects.is_near("recovery", "Checkpoints slow down training so I'd turn them off; failures are rare.")
    assert not subjects.is_near("recovery", "")
