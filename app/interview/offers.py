"""What can be sat: an interview of the content, a round, or what was put together for one sitting."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.codelabs import service as codelabs
from app.content import coding, recipes
from app.content.catalogue import Catalogue
from app.content.coding import CodingRound
from app.content.composed import Composed, compose
from app.content.interview_schemas import Interview
from app.content.recipes import Recipe
from app.core.errors import NotFound
from app.interview import queries
from app.interview.models import Sitting


def find_interview(content: Catalogue, key: str) -> Interview:
    """Raises NotFound."""
    found = content.interview(key)
    if found is None:
        raise NotFound(f"There is no interview {key!r}. Accepted: {', '.join(content.interviews)}.")
    return found


def find_offer(
    session: Session, learner_id: int, content: Catalogue, key: str
) -> tuple[Interview, Mapping[str, object] | None]:
    """What can be sat under `key`: an interview of the content, or a generated one that this learner has sat, with what
    was drawn for it. Raises NotFound."""
    sitting = None if content.interview(key) else _find_generated(session, learner_id, key)
    if sitting is None:
        return find_interview(content, key), None
    return interview_of(content, sitting), sitting.drawn


def _find_generated(session: Session, learner_id: int, key: str) -> Sitting | None:
    """The newest generated sitting that goes by `key`: its name in an address, or its id, as older addresses do."""
    generated = (each for each in reversed(queries.list_all(session, learner_id)) if is_generated(each))
    return next((each for each in generated if key in (_slug_of(each), each.interview_id.lower())), None)


def _slug_of(sitting: Sitting) -> str:
    return Recipe.from_json(sitting.drawn["recipe"]).slug


def was_sat(session: Session, learner_id: int, interview_id: str) -> bool:
    """Whether there is a sitting of this interview."""
    return queries.find_newest_of(session, learner_id, interview_id) is not None


def draw_tasks(
    session: Session, learner_id: int, content: Catalogue, interview: CodingRound, code_labs: str
) -> dict[str, object]:
    """The tasks of a coding round. Where learners' code cannot be run (`code_labs` is how it is configured) all are to
    be read, and `instead` says why."""
    why = codelabs.why_not_here(session, code_labs)
    known, last = (
        codelabs.list_passed_labs(session, learner_id),
        queries.find_newest_of(session, learner_id, interview.id),
    )
    met = {each.partition(".")[0] for each in last.drawn.get("questions", ())} if last else set()
    tasks = coding.draw_tasks(interview.file, content.labs, secrets.randbelow(2**31 - 1), not why, known, met)
    return {"questions": tasks, "values": {}, "instead": why}


def interview_of(content: Catalogue, sitting: Sitting) -> Interview:
    """What a sitting asks: an interview of the content, or what was put together for it. Raises NotFound."""
    return made_of(content, sitting.interview_id, sitting.drawn)


def made_of(content: Catalogue, interview_id: str, drawn: Mapping[str, Any]) -> Interview:
    """The interview that what was `drawn` for a sitting makes. Raises NotFound."""
    if "questions" not in drawn:
        return find_interview(content, interview_id)
    try:
        if "recipe" in drawn:
            return recipes.composed_of(content, drawn)
        return coding_sitting(content, find_interview(content, interview_id), drawn["questions"])
    except ValueError:
        raise NotFound(f"The questions of {interview_id} are no longer there.") from None


def coding_sitting(content: Catalogue, interview: Interview, tasks: Sequence[str]) -> Composed:
    """A sitting of a coding round: as long as its tasks. Raises ValueError where none of them is left."""
    questions = [each for each in (coding.task(name, content.labs) for name in tasks) if each is not None]
    head = interview.model_dump(include={"id", "slug", "title", "about", "revision"})
    return compose(content, tasks, {**head, "minutes": sum(each.minutes for each in questions) or interview.minutes})


def is_generated(sitting: Sitting) -> bool:
    return "recipe" in sitting.drawn
