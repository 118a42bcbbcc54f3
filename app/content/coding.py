"""Code labs in an interview: one that is written inside the sitting and run on real ranks, and programs to read.

A program to read is one of a lab's wrong solutions: its mistake is what the judge names when it is run. What else it
shows is not offered beside it, so there is exactly one right answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from random import Random
from typing import Annotated

from markupsafe import Markup
from pydantic import Field, PrivateAttr

from app.content import seeded
from app.content.code_labs import CodeLab, CodeLabId, Solution
from app.content.interview_schemas import Interview, Option, Question
from app.content.rounds import NoSuchPart
from app.content.schemas import InterviewId, Item

READING_MINUTES = 5
POINTS_A_MINUTE = 4
MOST_MISTAKES = 4  # among which the right one is to be found
FEWEST_UNTRUE = 2  # that have to be offered beside it
PASSES = "passes"
_BY_MISTAKE = re.compile(r"^(cl\d+-read)-[^.]+")
# What is asked who finds another mistake in a program than its own, and who finds none.
WHERE = "Point at the lines that do it. What do the ranks hold once they have run?"
PLAYED = "Play it through on 2 and on 3 ranks, message by message. What does each hold in the end?"
WRITE, READ, ASK = "write", "read", "ask"
ASKING_MINUTES = 3
DRAWS = 1000  # of the numbers of what is asked about a program


class TaskQuestion(Question):
    """A code lab's task: to be written (`coding`), with a program to be read (`choice`), or a number that is asked
    about what was written."""

    _lab: CodeLab = PrivateAttr()
    _shown: Markup | None = PrivateAttr(default=None)
    _drawn: Mapping[str, object] = PrivateAttr(default_factory=dict)

    @property
    def lab(self) -> CodeLab:
        """What is asked, and by whose checks it is judged."""
        return self._lab

    @property
    def shown(self) -> Markup | None:
        """The prompt where it is a program's: Markdown has no part in it."""
        return self._shown

    @property
    def drawn(self) -> Mapping[str, object]:
        """The numbers of what is asked about a program."""
        return self._drawn


class CodingFile(Item):
    """The fields of a coding round's file. Of `labs` one is drawn to be written; programs of others are read."""

    id: InterviewId
    labs: Annotated[tuple[CodeLabId, ...], Field(min_length=2)]
    readings: Annotated[int, Field(ge=1, le=4)]


class CodingRound(Interview):
    """A round whose tasks are drawn: what stands in `questions` is what a sitting has, not which."""

    _file: CodingFile = PrivateAttr()

    @property
    def is_round(self) -> bool:
        return True

    @property
    def file(self) -> CodingFile:
        """Which labs there are to draw from."""
        return self._file


def make_coding_round(file: CodingFile, labs: Mapping[str, CodeLab]) -> CodingRound:
    """The round of a file. Raises NoSuchPart for a lab that is not there."""
    for index, each in enumerate(file.labs):
        if each not in labs:
            raise NoSuchPart(("labs", index), f"there is no code lab {each}: {', '.join(labs)}")
    longest = max((labs[each] for each in file.labs), key=lambda lab: lab.head.minutes)
    reads = [_reading(labs[file.labs[0]], _readable(labs[file.labs[0]])[0]) for _ in range(file.readings)]
    questions = [
        each.model_copy(update={"id": f"{READ}-{number}", "title": "Read a program", "concepts": ()})
        for number, each in enumerate(reads, 1)
    ]
    write = _writing(longest).model_copy(update={"id": WRITE, "title": "Write one, run on real ranks", "concepts": ()})
    asks = [_asking(longest, 0).model_copy(update={"id": ASK, "concepts": ()})] if longest.head.afterwards else []
    head = file.model_dump(exclude={"labs", "readings"})
    made = CodingRound.model_construct(**head, parameters={}, let={}, questions=(*questions, write, *asks))
    made._file = file
    return made


def draw_tasks(
    file: CodingFile,
    labs: Mapping[str, CodeLab],
    seed: int,
    runs_here: bool,
    known: Collection[str],
    met: Collection[str] = (),
) -> list[str]:
    """The tasks of a sitting, by what they are called: a lab that its candidate has not passed (`known`) where there is
    one, and programs of others; none of the labs that were `met` in the sitting before, as far as there are others.
    Where learners' code cannot be run all are to be read."""
    source = Random(f"{file.id}:{file.revision}:{seed}")  # noqa: S311 - replayable, no secret
    fresh = [each for each in file.labs if each not in known] or list(file.labs)
    written = source.choice([each for each in fresh if each not in met] or fresh)
    others = [each for each in labs if each != written and each not in met]
    if len(others) < file.readings:
        others = [each for each in labs if each != written]
    read = source.sample(others, min(file.readings, len(others)))
    last = f"{written}.{WRITE}" if runs_here else a_reading(labs[written], source)
    asked = [f"{written}.{ASK}.{source.randrange(DRAWS)}"] if runs_here and labs[written].head.afterwards else []
    return [*(a_reading(labs[each], source) for each in read), last, *asked]


def a_reading(lab: CodeLab, source: Random) -> str:
    """One of a lab's programs to read, by what it is called. One mistake is as likely as another."""
    mistake = source.choice(sorted({each.says for each in _readable(lab)}))
    return f"{lab.id}.{READ}.{source.choice([each.name for each in _readable(lab) if each.says == mistake])}"


def _readable(lab: CodeLab) -> list[Solution]:
    """The programs whose mistake is the lab's own, where there are others that they do not show; a mistake that any lab
    can show is no puzzle."""
    own = [each for each in lab.wrong if each.says in lab.head.mistakes]
    return [each for each in own if len(set(lab.head.mistakes) - {each.says, *each.also}) >= FEWEST_UNTRUE]


def task(reference: str, labs: Mapping[str, CodeLab]) -> TaskQuestion | None:
    """The question called `reference`; None where content has none."""
    name, _, rest = reference.partition(".")
    lab, (kind, _, program) = labs.get(name), rest.partition(".")
    if lab is None or kind not in (WRITE, READ, ASK):
        return None
    if kind == WRITE:
        return _writing(lab)
    if kind == ASK:
        return _asking(lab, int(program)) if lab.head.afterwards and program.isdigit() else None
    solution = next((each for each in _readable(lab) if each.name == program), None)
    return _reading(lab, solution) if solution else None


def as_called_now(part: str) -> str:
    """What a part of a sitting is called: programs to read once went by the name of their mistake."""
    return _BY_MISTAKE.sub(r"\1", part)


def _writing(lab: CodeLab) -> TaskQuestion:
    question = TaskQuestion.model_construct(
        id=f"{lab.id.lower()}-{WRITE}",
        kind="coding",
        title=lab.title,
        prompt=lab.title,
        minutes=lab.head.minutes,
        points=lab.head.minutes * POINTS_A_MINUTE,
        explanation=lab.head.interview_line,
        concepts=lab.concepts,
        hints=lab.head.hints,
    )
    question._lab = lab
    asked = Markup("<p>“Write this. It is run on real ranks, with inputs you have not seen.”</p>")
    question._shown = asked + lab.statement
    return question


def _asking(lab: CodeLab, seed: int) -> TaskQuestion:
    """The number that is asked about what was written of a lab, at the numbers of `seed`."""
    about = lab.head.afterwards
    assert about is not None, "asked of labs that have one"
    question = TaskQuestion.model_construct(
        id=f"{lab.id.lower()}-{ASK}",
        kind="number",
        title=f"{lab.title}, at scale",
        prompt=about.prompt,
        minutes=ASKING_MINUTES,
        points=ASKING_MINUTES * POINTS_A_MINUTE,
        explanation=about.explanation,
        concepts=lab.concepts,
        key=about.key,
        unit=about.unit,
        tolerance=about.tolerance,
        slips=about.slips,
        doubt=about.doubt,
        follows=(f"{lab.id.lower()}-{WRITE}",),
    )
    question._lab = lab
    question._drawn = seeded.draw(f"{lab.id}:{lab.head.revision}", about.parameters, {}, None, seed)
    return question


def _reading(lab: CodeLab, solution: Solution) -> TaskQuestion:
    mistakes = lab.head.mistakes
    right = mistakes[solution.says]
    source = Random(f"{lab.id}:{solution.name}")  # noqa: S311 - replayable, no secret
    untrue = sorted(set(mistakes) - {solution.says, *solution.also})
    others = source.sample(untrue, min(MOST_MISTAKES - 1, len(untrue)))
    offered = sorted([solution.says, *others])
    source.shuffle(offered)
    why = f"It is another: {right.title[:1].lower()}{right.title[1:]}."
    options = [
        Option.model_construct(
            id=each,
            text=mistakes[each].title,
            correct=each == solution.says,
            message=right.says if each == solution.says else why,
            ask=WHERE,
            did="found another mistake in a program than its own",
        )
        for each in offered
    ]
    options.append(
        Option.model_construct(
            id=PASSES,
            text="Nothing is wrong",
            correct=False,
            message=why,
            ask=PLAYED,
            did="found nothing wrong in a program that fails",
        )
    )
    question = TaskQuestion.model_construct(
        id=f"{lab.id.lower()}-{READ}",  # it stands in the address: no word of the mistake
        kind="choice",
        title=f"Read: {lab.title}",
        prompt=lab.title,
        minutes=READING_MINUTES,
        points=READING_MINUTES * POINTS_A_MINUTE,
        explanation=right.says,
        learn="Play a program through on 2 and on 3 ranks, message by message",
        concepts=lab.concepts,
        options=tuple(options),
        cure=right.cure,
    )
    question._lab = lab
    question._shown = Markup(
        "<p>“A colleague hands in the program below for this task. What does the judge say is wrong with it?”</p>"
        '<details class="as-table" open><summary>The task</summary>{}</details><pre class="log" tabindex="0">{}</pre>'
    ).format(lab.statement, solution.code.rstrip())
    return question
