"""What became of one part of a sitting, and how it is stored. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.content.coding import as_called_now
from app.content.composed import FOLLOW_UP
from app.grading.hints import share_left
from app.grading.levels import Level, level_of, share
from app.grading.rubrics.points import Verdict
from app.interview.challenging import SAID_AGAIN, STOOD_BY, TAKEN_BACK, WITHDRAWN
from app.interview.givens import GivenReply
from app.reveal.number import SaidNumber

NOT_ASKED, NO_ANSWER = "not asked", "no answer"
TO_JUDGE = "to judge"  # in a card of a version that did not hear words: they count nothing until their author judges
CORRECTED = "corrected"  # a wrong answer not in words that was put right when it was questioned
BETTER = "better"  # still wrong when it was questioned, and worth more than before
UNPUSHED = ("harder", "own")  # what is worth no points, and is not asked about again
VERDICTS = {"correct": "right", "wrong": "wrong", "invalid": "not readable"}


@dataclass(frozen=True)
class JudgedPoint:
    """A point of a text answer's rubric. `heard` is the grader's verdict on `evidence`, None in an older card.

    `met` is the candidate's own judgement, None before there is one. It is kept beside the grader's, and decides where
    that is unsure. `credit` is what counts of the answer, 0 to 1; `pushed` what counts of the replies to probes, which
    say it in `reply`. `criterion` is what a debrief counts it for, `topic` what it is about in a few words. `said_in`
    are the parts whose words carry it: that of the answer, those of replies, or both where one goes on with the other;
    `near_in` those that have something near it, None where nobody looked. What is said in half for lack of a number
    `wants_figure`. What was near it at most, and was explained in another way again when it was asked about, is said
    `otherwise`.
    """

    id: str
    point: str
    weight: int
    met: bool | None
    heard: Verdict | None = None
    credit: float = 0.0
    evidence: tuple[str, ...] = ()
    half: str = ""
    pushed: float = 0.0
    reply: tuple[str, ...] = ()
    criterion: str = "correctness"
    topic: str = ""
    said_in: tuple[str, ...] = ()
    near_in: tuple[str, ...] | None = None
    wants_figure: bool = False
    otherwise: bool = False

    @property
    def is_absent(self) -> bool:
        """Whether it is surely missing: it was not heard, and nothing that was said is near it."""
        return self.heard == "missed" and not self.counts and self.near_in == ()

    @property
    def is_open(self) -> bool:
        """Whether the grader was unsure, no reply said all of it, and the candidate has not decided."""
        return self.heard == "unsure" and self.met is None and self.counts < 1 and not self.otherwise

    @property
    def is_denied(self) -> bool:
        """Whether its opposite was heard, and no reply put it right."""
        return self.heard == "contradicted" and not self.counts

    @property
    def counts(self) -> float:
        """The share of its weight that counts: before there was a grader, the candidate's word alone."""
        return max(self.credit, self.pushed) if self.heard else float(bool(self.met))

    @property
    def differs(self) -> bool:
        """Whether grader and candidate judged it otherwise."""
        return self.met is not None and self.heard not in (None, "unsure") and self.met != (self.heard == "met")

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> JudgedPoint:
        """A point as it was stored, now or in an earlier version."""
        evidence, reply = tuple(stored.get("evidence", ())), tuple(stored.get("reply", ()))
        near_in = None if stored.get("near_in") is None else tuple(stored["near_in"])
        parts = {"said_in": tuple(stored.get("said_in", ())), "near_in": near_in}
        return cls(**{**stored, "evidence": evidence, "reply": reply, **parts})


@dataclass(frozen=True)
class Pushed:
    """What the interviewer asked on account of an answer, and what was said to it. `asked` is HTML; a probe has the
    `point` that it asks for. `placed` is a new order; `message` says of a layout or a plan what it comes to now."""

    part: str
    asked: str
    said: str
    verdict: str
    point: str = ""
    evidence: tuple[str, ...] = ()
    placed: tuple[str, ...] = ()
    message: str = ""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pushed:
        """As it was stored."""
        read = {"evidence": tuple(stored["evidence"]), "placed": tuple(stored.get("placed", ()))}
        return cls(**{**stored, **read})


@dataclass(frozen=True)
class Challenged:
    """Something false that an answer said (`quote`), and what became of it when it was asked about; `outcome` is one of
    `app.interview.challenging`, or that it was not asked about or not answered; `reply` is what was said then.
    `contradicts` are points that it stands against, `so` is what is so, in plain words, as the answer to `ask`."""

    id: str
    topic: str
    quote: str
    outcome: str
    so: str
    learn: str
    cure: str
    contradicts: tuple[str, ...] = ()
    reply: str = ""
    ask: str = ""

    @property
    def is_taken_back(self) -> bool:
        """Whether it was taken back, with what is so or without."""
        return self.outcome in (TAKEN_BACK, WITHDRAWN)

    @property
    def is_held_on(self) -> bool:
        """Whether it was said again when it was asked about, or stood by."""
        return self.outcome in (SAID_AGAIN, STOOD_BY)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Challenged:
        """As it was stored."""
        return cls(**{**stored, "contradicts": tuple(stored["contradicts"])})


@dataclass(frozen=True)
class Row:
    """What became of one part. `asked` and `explanation` are HTML; `key` and `said_text` are as a person reads them.

    `slip` is a wrong number's mistake as a title says it, `did` what was done, as a sentence about its candidate goes
    on, `learn` what to do instead; `number` what there is to draw of it. `notes` are what was
    heard in words beyond the points: wrong sums, mere terms. `givens` are what was asked for or had to be told,
    `hints` those that were opened, in plain words; `checks`, of a program or a layout, what was looked at and whether
    it held. `placed` has for each place of an order what belongs there and what was put there; `criterion` is what its
    question says that it counts for; `ticked`, of a set, how many right ones were ticked, how many there are, and how
    many wrong ones were ticked. `at_levels` is the same answer at each level, as plain text. Of what was `reached`,
    `gained` came only of being asked about it; it is `overlong` where its question took longer than its time. `key` is
    right by theory; where own wrong numbers lead elsewhere, `own_key` follows from them, `own_from`, and counts too;
    what `is_true_after` them is right by theory and does not follow. `challenged` is what its words say that is false
    whatever was asked.
    """

    id: str
    title: str
    kind: str
    said: str
    points: float
    verdict: str
    reached: float = 0.0
    key: str | None = None
    message: str = ""
    explanation: str = ""
    cure: str | None = None
    said_text: str | None = None
    rubric: tuple[JudgedPoint, ...] = ()
    exemplar: str = ""
    asked: str = ""
    slip: str = ""
    number: SaidNumber | None = None
    notes: tuple[str, ...] = ()
    pushed: tuple[Pushed, ...] = ()
    is_harder: bool = False
    givens: tuple[GivenReply, ...] = ()
    hints: tuple[str, ...] = ()
    checks: tuple[tuple[str, bool], ...] = ()
    placed: tuple[tuple[str, str], ...] = ()
    criterion: str | None = None
    ticked: tuple[int, int, int] | None = None
    at_levels: tuple[tuple[str, str], ...] = ()
    gained: float = 0.0
    did: str = ""
    learn: str = ""
    overlong: bool = False
    own_key: str = ""
    own_from: str = ""
    challenged: tuple[Challenged, ...] = ()
    is_true_after: bool = False

    @property
    def right_text(self) -> str:
        """What is right, in words: by theory, and after own wrong numbers where it goes by these."""
        after = f", or {self.own_key} after your {self.own_from}" if self.own_key else ""
        return f"{self.key} is right{after}"

    @property
    def question(self) -> str:
        """The question that it is a part of, by its id."""
        return self.id.partition(".")[0]

    @property
    def chip(self) -> str:
        """Its verdict as it is shown in a word or two: of a set that is right in part, how many of how many."""
        if self.verdict != VERDICTS["wrong"] or not self.ticked or not self.ticked[0]:
            return self.verdict
        right, of, wrong = self.ticked
        return f"{right} of {of}" + (f", {wrong} wrong" if wrong else "")

    @property
    def level(self) -> Level:
        """That of an answer in words, by itself."""
        return level_of(share(self.reached, self.points)) if self.points else "no hire"

    @property
    def worth(self) -> float:
        """What opened hints left of its points."""
        return self.points * share_left(len(self.hints))

    @property
    def is_evidence(self) -> bool:
        """Whether it was asked, answered and judged, and so says what the candidate knows: a sitting may end before."""
        return bool(self.points) and self.verdict not in (TO_JUDGE, NOT_ASKED, NO_ANSWER)

    @property
    def is_follow_up(self) -> bool:
        """Whether it is the second number of a question."""
        return self.id.endswith(f".{FOLLOW_UP}")

    @property
    def false_words(self) -> frozenset[str]:
        """The sentences that say something false whatever was asked."""
        return frozenset(each.quote for each in self.challenged)

    @property
    def kept(self) -> tuple[tuple[JudgedPoint, str], ...]:
        """The points whose opposite was heard and kept when it was asked about, each with the reply that kept it. What
        rests on something that is false is told with that."""
        replies = {each.point: each.said for each in self.pushed if each.point and each.verdict == "contradicted"}
        against = (each for each in self.rubric if each.is_denied)
        return tuple((each, replies[each.id]) for each in against if each.id in replies and not self._is_false(each))

    @property
    def wrong_words(self) -> tuple[str, ...]:
        """The sentences that are false, or were heard as the opposite of a point, and were not put right: each once,
        whatever it speaks against."""
        found = [each.quote for each in self.challenged if not each.is_taken_back]
        found += (words for point in self.rubric if point.is_denied for words in point.evidence)
        told = list(dict.fromkeys(each.strip() for each in found))
        return tuple(each for each in told if not any(each != other and each in other for other in told))

    def told_by(self, point: JudgedPoint) -> str:
        """The sentence by which what was wrong of a point is told: one that another point is met by is right, and not
        told. Empty where there is no other."""
        right = {words for each in self.rubric if each.heard == "met" and each.credit for words in each.evidence}
        return next((each for each in point.evidence if not any(each in words or words in each for words in right)), "")

    def _is_false(self, point: JudgedPoint) -> bool:
        """Whether a point rests on words that are false whatever was asked."""
        return any(false in words or words in false for false in self.false_words for words in point.evidence)

    @property
    def is_doubtful(self) -> bool:
        """Whether it says something that is false, was heard as the opposite of a point or explains it otherwise, and
        was not put right."""
        denied = any(each.is_denied or (each.otherwise and not each.counts) for each in self.rubric)
        return denied or any(not each.is_taken_back for each in self.challenged)

    @property
    def lost(self) -> float:
        """The points that were not reached; none while they are to be judged."""
        return 0.0 if self.verdict == TO_JUDGE else self.points - self.reached

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Row:
        """A row as it was stored, now or in an earlier version."""
        number = SaidNumber.from_json(stored["number"]) if stored.get("number") else None
        rubric = tuple(JudgedPoint.from_json(point) for point in stored.get("rubric", ()))
        pushed = tuple(Pushed.from_json(each) for each in stored.get("pushed", ()))
        notes = tuple(stored.get("notes", ()))
        givens = tuple(GivenReply.from_json(each) for each in stored.get("givens", ()))
        read = {"rubric": rubric, "number": number, "notes": notes, "pushed": pushed, "givens": givens}
        read["ticked"] = tuple(stored["ticked"]) if stored.get("ticked") else None
        read["challenged"] = tuple(Challenged.from_json(each) for each in stored.get("challenged", ()))
        read["hints"] = tuple(stored.get("hints", ()))
        read["at_levels"] = tuple((level, text) for level, text in stored.get("at_levels", ()))
        read["placed"] = tuple((right, mine) for right, mine in stored.get("placed", ()))
        read["checks"] = tuple((str(title), bool(held)) for title, held in stored.get("checks", ()))
        return cls(**{**stored, **read, "id": as_called_now(stored["id"])})


def has_stayed(row: Row, pushed: Pushed) -> bool:
    """Whether a reply repeats the answer that was asked about."""
    return pushed.said in (row.said, row.said_text)
