"""A generated sitting: what its recipe says, which questions it comes to, and their numbers. Pure.

The same recipe gives the same sitting as long as the content stays as it is. A sitting stores its questions and numbers
(`drawn`), so that it stays what it was, and can be sat again, when the content changes.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from app.content import interview_draws, problem_draws
from app.content.catalogue import Catalogue
from app.content.code_labs import CodeLab
from app.content.coding import READING_MINUTES, WRITE, a_reading
from app.content.composed import Composed, borrowable, compose, concepts_of, needs_of
from app.content.formulas_asked import Formula, formulas_of
from app.content.interview_schemas import Interview, Question
from app.content.problem_schemas import Problem
from app.content.rounds import BorrowedQuestion
from app.core.errors import DomainError, Violation
from app.words import article, listed

SHORTEST, LONGEST = 15, 60  # minutes
TOLERANCE = 2  # minutes that the questions may fall short of the length; they never exceed it
LARGEST_SEED = problem_draws.LARGEST_SEED
ANYTHING, WEAKEST = "anything", "weakest"
YES = "yes"
MOST_OF_IT_CODING = 2 / 3  # of a sitting's minutes that its program may take
MOST_WEAK = 6  # concepts that a sitting on what is weakest is about

# Numbers are drawn beyond the seeds of practice, which are the lowest, and those of rounds, which come next.
_FIRST_SEED = 2 * (LARGEST_SEED + 1)
_TRIES = 6
_MINUTES_OF_A_SOURCE = 10  # on average: who is given a new scene should stay in it for a while
_FOCUSED, _FOR_THE_ROLE = 12.0, 2.0
_AGAIN = 0.5  # how much lighter a question is for each one before it on the same
_OF_A_SOURCE_THAT_IS_THERE = 1.6
# Words are probed and numbers of interviews followed up; a problem's parts are neither.
_BY_KIND = {"text": 1.5, "number": 1.2}
_OF_A_PROBLEM = 0.8
_NAMES = {"a100-80gb": "A100", "h100-80gb": "H100"}


@dataclass(frozen=True)
class Recipe:
    """What a sitting is generated from. `concepts` are what is weakest, as it was when it was asked for; with `coding`
    it ends with a program to write."""

    minutes: int
    focus: str = ANYTHING
    role: str = ANYTHING
    seed: int = 0
    concepts: tuple[str, ...] = ()
    coding: bool = False

    @property
    def id(self) -> str:
        """What its sittings are sittings of: who sits the same recipe again meets the same questions and numbers."""
        return f"G{sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:10]}"

    @property
    def slug(self) -> str:
        """Its name in an address: what it is about, how long, for whom, and the number that it was drawn by."""
        role = [] if self.role == ANYTHING else ["for", self.role]
        program = ["with", "a", "program"] if self.coding else []
        return "-".join([self.focus, str(self.minutes), "minutes", *role, *program, str(self.seed)])

    def to_json(self) -> dict[str, Any]:
        """As it is stored and exported. One without coding is what it was before there was coding."""
        found = asdict(self) | {"concepts": list(self.concepts)}
        if not self.coding:
            del found["coding"]
        return found

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Recipe:
        """What `to_json` stored."""
        return cls(**{**stored, "concepts": tuple(stored["concepts"])})


@dataclass(frozen=True)
class Focus:
    """Something that a sitting can be about: a heading of the concept map, with the minutes there are on it."""

    id: str
    title: str
    concepts: tuple[str, ...]
    minutes: int


@dataclass(frozen=True)
class _Offered:
    """A question that can be borrowed; `needs` are all that come with it, nearest last."""

    reference: str
    source: str
    question: Question
    concepts: tuple[str, ...]
    needs: tuple[str, ...]


@dataclass(frozen=True)
class _Task:
    """A program to write or to read, by what it is called."""

    reference: str
    minutes: int


def foci(content: Catalogue) -> list[Focus]:
    """What a sitting can be about, in the order of the concept map: what there is enough on for the shortest."""
    return _foci(content, _pool(content))


def _foci(content: Catalogue, pool: Mapping[str, _Offered]) -> list[Focus]:
    found: list[Focus] = []
    for group in dict.fromkeys(concept.group for concept in content.concepts.values()):
        concepts = tuple(concept.id for concept in content.concepts.values() if concept.group == group)
        minutes = sum(each.question.minutes for each in pool.values() if set(concepts).intersection(each.concepts))
        if minutes >= SHORTEST:
            found.append(Focus(group.lower().replace(" ", "-"), group, concepts, minutes))
    return found


def asked_concepts(content: Catalogue) -> set[str]:
    """The concepts that some question is about."""
    return {concept for each in _pool(content).values() for concept in each.concepts}


def read_recipe(content: Catalogue, said: Mapping[str, str], concepts: Sequence[str], seed: int) -> Recipe:
    """The recipe in the fields of a form; `seed` where it says none. Raises DomainError with every field at fault."""
    wrong: list[Violation] = []
    minutes = _number(said.get("minutes", ""), "minutes", SHORTEST, LONGEST, wrong)
    if said.get("seed", "").strip():
        seed = _number(said["seed"], "seed", 0, LARGEST_SEED, wrong)
    focus = said.get("focus") or ANYTHING
    role = said.get("role") or ANYTHING
    accepted = [ANYTHING, WEAKEST, *(each.id for each in foci(content))]
    if focus not in accepted:
        wrong.append(Violation("focus", focus, "There is no such topic.", ", ".join(accepted)))
    if role not in (accepted := [ANYTHING, *(each.id for each in content.roles)]):
        wrong.append(Violation("role", role, "There is no such role.", ", ".join(accepted)))
    if (coding := said.get("coding") or YES) != YES:
        wrong.append(Violation("coding", coding, "It is there or not.", f"{YES}, or nothing"))
    if strange := [each for each in concepts if each not in content.concepts]:
        wrong.append(Violation("concepts", strange[0], "There is no such concept.", "those of the concept map"))
    if wrong:
        raise DomainError("No sitting was generated.", wrong)
    weakest = tuple(dict.fromkeys(concepts))[:MOST_WEAK] if focus == WEAKEST else ()
    return Recipe(minutes, focus, role, seed, weakest, said.get("coding") == YES)


def _number(text: str, field: str, least: int, most: int, wrong: list[Violation]) -> int:
    accepted = f"a whole number from {least:,} to {most:,}"
    try:
        value = int(text.strip().replace(",", ""))
    except ValueError:
        wrong.append(Violation(field, text, "That is no whole number." if text.strip() else "It is missing.", accepted))
        return least
    if not least <= value <= most:
        wrong.append(Violation(field, text, "It is too small." if value < least else "It is too large.", accepted))
    return value


def generate(content: Catalogue, recipe: Recipe, why_not_run: str = "") -> dict[str, Any]:
    """What a sitting of `recipe` stores: its questions, by what they are called, and their numbers. Where programs
    cannot be run, and `why_not_run` says why, one is read instead."""
    references = questions_of(content, recipe, not why_not_run)
    sources = compose(content, references, _head(content, recipe)).sources
    scene = _scene(sources.values(), random.Random(f"{recipe.id}:scene"))  # noqa: S311 - replayable, no secret
    seed = _FIRST_SEED + int(recipe.id[1:8], 16)
    values = {name: _values(source, scene, seed) for name, source in sources.items()}
    drawn = {"recipe": recipe.to_json(), "questions": list(references), "scene": scene, "values": values}
    return drawn | ({"instead": why_not_run} if recipe.coding else {})


def composed_of(content: Catalogue, drawn: Mapping[str, Any]) -> Composed:
    """The interview of a generated sitting that stored `drawn`. Raises ValueError where content has none of it."""
    recipe = Recipe.from_json(drawn["recipe"])
    return compose(content, drawn["questions"], _head(content, recipe, drawn["scene"]))


def questions_of(content: Catalogue, recipe: Recipe, runs_here: bool = True) -> tuple[str, ...]:
    """The questions of a recipe, by what they are called: what comes nearest to focus and role among many ways to fill
    the time, each with all that it builds on; last, where there is coding, a program."""
    pool = _pool(content)
    focus, role = _concepts(content, pool, recipe)
    task = _task(content, recipe, focus, role, runs_here) if recipe.coding else None
    minutes = recipe.minutes - (task.minutes if task else 0)
    found, formulas = [], {name: formulas_of(each.question) for name, each in pool.items()}
    for number in range(_TRIES):
        source = random.Random(f"{recipe.id}:{number}")  # noqa: S311 - replayable, no secret
        liked = {name: source.uniform(0.4, 1.6) for name in dict.fromkeys(each.source for each in pool.values())}
        weights = {
            each.reference: liked[each.source] * source.uniform(0.6, 1.4) * _weight(each, focus, role)
            for each in pool.values()
        }
        chosen = _filled(pool, formulas, weights, minutes)
        found.append((_rating([pool[each] for each in chosen], focus, minutes), number, chosen))
    chosen = max(found)[-1]
    ordered = _in_order(pool, chosen, random.Random(f"{recipe.id}:order"))  # noqa: S311 - replayable, no secret
    return (*ordered, task.reference) if task else ordered


def _task(content: Catalogue, recipe: Recipe, focus: Collection[str], role: Collection[str], runs_here: bool) -> _Task:
    """The code lab nearest to focus and role among those that leave time for other questions; to be read where it
    cannot be run."""
    source = random.Random(f"{recipe.id}:task")  # noqa: S311 - replayable, no secret
    fitting = [each for each in content.labs.values() if each.head.minutes <= recipe.minutes * MOST_OF_IT_CODING]

    def near(lab: CodeLab) -> float:
        on_focus, for_role = (sum(each in lab.concepts for each in of) / len(lab.concepts) for of in (focus, role))
        return source.uniform(0.4, 1.6) * (1 + _FOCUSED * on_focus + _FOR_THE_ROLE * for_role)

    lab = max(fitting, key=near)
    if runs_here:
        return _Task(f"{lab.id}.{WRITE}", lab.head.minutes)
    return _Task(a_reading(lab, source), READING_MINUTES)


def _weight(offered: _Offered, focus: Collection[str], role: Collection[str]) -> float:
    near = 1 + _FOCUSED * _part(offered, focus) + _FOR_THE_ROLE * _part(offered, role)
    return near * (
        _OF_A_PROBLEM if isinstance(offered.question, BorrowedQuestion) else _BY_KIND.get(offered.question.kind, 1)
    )


def _rating(asked: Sequence[_Offered], focus: frozenset[str], minutes: int) -> tuple[bool, int, int]:
    """How good a choice of questions is: it fills the time, has words and numbers in it, and keeps to the focus."""
    is_full = sum(each.question.minutes for each in asked) >= minutes - TOLERANCE
    kinds = {each.question.kind for each in asked} & {"text", "number"}
    return is_full, len(kinds), sum(each.question.minutes for each in asked if focus & set(each.concepts))


def minutes_on_focus(content: Catalogue, recipe: Recipe, composed: Composed) -> int | None:
    """The minutes of a sitting that are about its focus; None without one."""
    focus = _concepts(content, _pool(content), recipe)[0]
    about = (each for each in composed.questions if set(focus).intersection(concepts_of(each)))
    return sum(each.minutes for each in about) if focus else None


def _pool(content: Catalogue) -> dict[str, _Offered]:
    questions = borrowable(content)
    found: dict[str, _Offered] = {}
    for reference, question in questions.items():
        needs: list[str] = []
        for need in needs_of(reference, question):
            if need in found:
                needs += [each for each in (*found[need].needs, need) if each not in needs]
        source = reference.partition(".")[0]
        found[reference] = _Offered(reference, source, question, concepts_of(question), tuple(needs))
    return found


def _concepts(
    content: Catalogue, pool: Mapping[str, _Offered], recipe: Recipe
) -> tuple[frozenset[str], frozenset[str]]:
    """What a recipe's focus and role are about; nothing where it has none."""
    focus = next((each.concepts for each in _foci(content, pool) if each.id == recipe.focus), recipe.concepts)
    role = next((each.concepts for each in content.roles if each.id == recipe.role), ())
    return frozenset(focus), frozenset(role)


def _part(offered: _Offered, concepts: Collection[str]) -> float:
    """Which part of a question's concepts is among `concepts`."""
    return sum(concept in concepts for concept in offered.concepts) / len(offered.concepts)


def _repeats(computed: Collection[Formula], added: Sequence[frozenset[Formula]]) -> bool:
    """Whether what is added computes by a formula that was `computed` by, or two of it by one."""
    new = [formula for each in added for formula in each]
    return len(set(new)) < len(new) or not set(new).isdisjoint(computed)


def _filled(
    pool: Mapping[str, _Offered],
    formulas: Mapping[str, frozenset[Formula]],
    weights: Mapping[str, float],
    minutes: int,
) -> list[str]:
    """Questions that together take at most `minutes`, the heaviest first, each behind what it needs, none by a formula
    that another has. What is asked of a concept makes more of the same lighter."""
    chosen: list[str] = []
    asked = Counter[str]()
    left, most_sources = minutes, 1 + minutes // _MINUTES_OF_A_SOURCE

    def weight_of(added: Sequence[str], sources: Collection[str]) -> float:
        weight = minutes_taken = 0.0
        for each in map(pool.__getitem__, added):
            again = sum(asked[concept] for concept in each.concepts) / len(each.concepts)
            weight += weights[each.reference] * each.question.minutes / (1 + _AGAIN * again)
            minutes_taken += each.question.minutes
        is_there = pool[added[-1]].source in sources
        # the time is filled rather than left, should the sources that are there have no more
        new = 1.0 if len(sources) < most_sources else 0.01
        return weight / minutes_taken * (_OF_A_SOURCE_THAT_IS_THERE if is_there else new)

    while True:
        sources = {pool[each].source for each in chosen}
        titles = {pool[each].question.title for each in chosen}  # who has the state of one model has that of another
        computed = {formula for each in chosen for formula in formulas[each]}
        fitting = [
            added
            for each in pool.values()
            if each.reference not in chosen
            and each.question.kind != "givens"  # nobody asks what there is to know, and then computes nothing with it
            and (added := [name for name in (*each.needs, each.reference) if name not in chosen])
            and sum(pool[name].question.minutes for name in added) <= left
            and titles.isdisjoint(pool[name].question.title for name in added)
            and not _repeats(computed, [formulas[name] for name in added])
        ]
        if not fitting:
            return chosen
        best = max(fitting, key=lambda added: weight_of(added, sources))
        chosen += best
        left -= sum(pool[name].question.minutes for name in best)
        asked.update(concept for name in best for concept in pool[name].concepts)


def _in_order(pool: Mapping[str, _Offered], chosen: Iterable[str], source: random.Random) -> tuple[str, ...]:
    """Source by source, each in its own order: interviews, then problems; who opens with words comes first."""
    chosen = set(chosen)
    ordered = [each for each in pool.values() if each.reference in chosen]
    names = list(dict.fromkeys(each.source for each in ordered))
    source.shuffle(names)
    first = {name: next(each for each in ordered if each.source == name) for name in names}
    names.sort(key=lambda name: (isinstance(first[name].question, BorrowedQuestion), not _opens(first[name])))
    return tuple(each.reference for name in names for each in ordered if each.source == name)


def _opens(offered: _Offered) -> bool:
    return offered.question.kind == "text" and not offered.needs


def _scene(sources: Iterable[Interview | Problem], source: random.Random) -> dict[str, object]:
    """What several interviews of a sitting share, as the machine and the size of the model: one value for all of them
    that have it."""
    offered: dict[str, list[Sequence[object]]] = {}
    for each in sources:
        if isinstance(each, Interview):
            for name, choices in each.parameters.items():
                offered.setdefault(name, []).append(choices)
    scene: dict[str, object] = {}
    for name in sorted(offered):
        counts = Counter(value for choices in offered[name] for value in choices)
        most = max(counts.values())
        if most > 1 or name == "device":
            scene[name] = source.choice(sorted((value for value in counts if counts[value] == most), key=str))
    return scene


def _values(source: Interview | Problem, scene: Mapping[str, object], seed: int) -> dict[str, object]:
    if isinstance(source, Problem):
        return problem_draws.draw(source, seed)
    narrowed = {
        name: (scene[name],) if scene.get(name) in choices else choices for name, choices in source.parameters.items()
    }
    return interview_draws.draw(source, seed, narrowed)  # type: ignore[arg-type]


def _head(content: Catalogue, recipe: Recipe, scene: Mapping[str, object] | None = None) -> dict[str, object]:
    """Id, title and what it is about, in words."""
    topic = next((each.title for each in foci(content) if each.id == recipe.focus), "")
    title = topic or ("Where you are weakest" if recipe.focus == WEAKEST and recipe.concepts else "A bit of everything")
    role = next((each for each in content.roles if each.id == recipe.role), None)
    said = [f"{recipe.minutes} minutes"]
    title = f"{title}, {said[0]}"
    said += [f"for {article(role.title)} {role.title.lower()}"] if role else []
    about = f"Put together from questions of several interviews and problems, {' '.join(said)}."
    weak = [content.concepts[each].title for each in recipe.concepts if each in content.concepts]
    about += f" Weakest, by what you did: {listed(weak)}." if weak else ""
    about += " It ends with a program." if recipe.coding else ""
    machine = _NAMES.get(str((scene or {}).get("device", "")))
    about += f" Where an interview's question names a GPU, it is the {machine}." if machine else ""
    return {"id": recipe.id, "slug": recipe.slug, "title": title, "about": about, "minutes": recipe.minutes}
