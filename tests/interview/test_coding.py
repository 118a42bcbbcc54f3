"""The coding round: written inside the sitting, judged once, whatever the judge and the clock do meanwhile."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from fastapi.testclient import TestClient
from markupsafe import escape
from sqlalchemy import update

from app.codelabs import service as codelabs
from app.codelabs import work
from app.codelabs.models import CodeSubmission
from app.codelabs.outcome import share_of
from app.content import coding
from app.content.catalogue import Catalogue
from app.core.db import Database
from app.core.models import LOCAL_LEARNER
from app.grading.hints import share_left
from app.interview import closing, offers, overdue, service, stored
from labs.spec.code import Check, Verdict
from tests.conftest import Clock
from tests.support.shipped import shipped

HTML = {"Accept": "text/html"}
PROGRAM = "import torch\n\n# mine\n"


def _verdict(lab: str, held: float) -> Verdict:
    """Every check of `lab` on 2, 3 and 4 ranks, of which the first `held` hold."""
    names = [each.id for each in shipped().labs[lab].head.checks]
    every = [(name, ranks) for name in names for ranks in (2, 3, 4)]
    checks = [
        Check(name=name, ranks=ranks, passed=index < held * len(every), expected="", seen="")
        for index, (name, ranks) in enumerate(every)
    ]
    returns = [Check(name="finishes", ranks=ranks, passed=True, expected="", seen="") for ranks in (2, 3, 4)]
    passed = all(each.passed for each in checks)
    return Verdict(lab=lab, passed=passed, score=float(passed), checks=(*returns, *checks))


class Round:
    """A sitting of the round, and the judge's worker beside it."""

    def __init__(self, client: TestClient, database: Database, clock: Clock, content: Catalogue) -> None:
        self.client, self.database, self.clock, self.content = client, database, clock, content
        self.address = client.post("/interview/coding").headers["location"]
        with database.read() as session:
            found = service.find_sitting(session, LOCAL_LEARNER, self.number)
            self.asked = offers.interview_of(content, found).questions
        self.part = next(each.id for each in self.asked if each.kind == "coding")
        self.lab = self.part[:4].upper()

    @property
    def number(self) -> int:
        return int(self.address.rpartition("/")[2])

    def send(self, path: str, **data: str) -> int:
        return self.client.post(f"{self.address}/{path}", data={"part": self.part, **data}, headers=HTML).status_code

    def judge(self, held: float) -> bool:
        """As the worker has the next submission judged; whether one waited."""
        with self.database.write() as session:
            claim = work.claim_next(session, "worker", self.clock())
            if claim is not None:
                work.end_judged(session, claim, _verdict(claim.submission.lab, held), self.clock())
        return claim is not None

    def row(self) -> tuple[str, float, float]:
        with self.database.read() as session:
            found = service.find_sitting(session, LOCAL_LEARNER, self.number)
            row = stored.scorecard_of(found).row(self.part)
        return row.verdict, row.reached, row.points

    def sweep(self) -> None:
        with self.database.write() as session:
            closing.close_overdue(session, self.content, self.clock())

    def waits(self) -> bool:
        with self.database.read() as session:
            return overdue.has_overdue(session, self.clock())


@pytest.fixture
def sat(
    client: TestClient, database: Database, clock: Clock, content: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> Round:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    return Round(client, database, clock, content)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_it_is_run_as_often_as_one_likes_and_judged_once(sat: Round) -> None:
    assert [each.kind for each in sat.asked] == ["choice", "choice", "coding", "number"]
    page = sat.client.get(f"{sat.address}?part={sat.part}").text
    assert escape(sat.content.labs[sat.lab].starter.strip()) in page
    assert "Run the visible checks" in page
    assert sat.send("runs", answer=PROGRAM) == 303
    assert sat.judge(1.0)
    page = sat.client.get(f"{sat.address}?part={sat.part}").text
    assert "The visible checks hold." in page
    assert "# mine" in page
    assert "Now that it passed" not in page
    assert sat.send("hints", hint="1") == 303
    assert sat.send("answers", answer=PROGRAM, final="1") == 303
    assert sat.send("answers", answer="other", final="1") == 409
    assert sat.send("runs", answer="other") == 409
    assert sat.judge(1.0)
    assert not sat.judge(1.0), "one submission counts"
    sat.send("finish")
    verdict, reached, points = sat.row()
    assert (verdict, reached) == ("right", pytest.approx(points * share_left(1)))
    with sat.database.read() as session:
        found = service.list_evidence(session, LOCAL_LEARNER)
        assert sat.lab not in {each.item_id for each in found}, "the lab's own pass says it, once"
        assert [each.item_id for each in codelabs.list_evidence(session, LOCAL_LEARNER)] == [sat.lab]
    sat.send("expectation", level="")
    debrief = sat.client.get(sat.address).text
    assert "# mine" in debrief
    assert "Held" in debrief
    again = Round(sat.client, sat.database, sat.clock, sat.content)
    assert again.lab != sat.lab, "one that was not passed yet"
    again.send("finish")
    again.send("expectation", level="")
    assert "Beside your earlier sittings" in again.client.get(again.address).text


def test_what_the_judge_still_has_when_it_closes_counts_when_it_comes_and_once(sat: Round) -> None:
    assert sat.send("answers", answer=PROGRAM, final="1") == 303
    sat.send("finish")
    assert "Your program is being run" in sat.client.get(sat.address).text
    assert sat.waits()
    sat.sweep()
    assert "Your program is being run" in sat.client.get(sat.address).text
    assert sat.judge(0.5)
    assert "Which level was that?" in sat.client.get(sat.address).text, "looking shows it, and writes nothing"
    assert sat.waits()
    sat.sweep()
    assert not sat.waits()
    verdict, reached, points = sat.row()
    assert "checks held" in verdict
    assert 0 < reached < points
    sat.send("finish")
    sat.sweep()
    assert sat.row() == (verdict, reached, points)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_draft_is_handed_in_when_time_is_up(sat: Round) -> None:
    sat.send("answers", answer=PROGRAM)
    sat.clock.advance(minutes=sat.content.interviews["T3"].minutes + 1)
    assert "Your program is being run" in sat.client.get(sat.address).text
    assert not sat.judge(1.0), "looking hands nothing in"
    sat.sweep()
    assert sat.judge(1.0)
    sat.sweep()
    assert sat.row()[0] == "right"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_starter_is_no_answer(sat: Round) -> None:
    assert sat.send("answers", answer=sat.content.labs[sat.lab].starter, final="1") == 422
    sat.send("answers", answer=sat.content.labs[sat.lab].starter)
    sat.send("finish")
    assert not sat.judge(1.0)
    assert sat.row()[:2] == ("no answer", 0.0)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_judge_that_never_speaks_is_not_waited_for_and_never_scores_behind(sat: Round) -> None:
    sat.send("answers", answer=PROGRAM, final="1")
    with sat.database.write() as session:
        claim = work.claim_next(session, "worker", sat.clock())
    assert claim is not None
    sat.send("finish")
    sat.clock.advance(minutes=6)
    sat.sweep()
    assert sat.row() == ("not asked", 0.0, 0.0)
    with sat.database.write() as session:
        work.end_judged(session, claim, _verdict(sat.lab, 1.0), sat.clock())
    sat.sweep()
    with sat.database.write() as session:
        graded = closing._graded(
            session, sat.content, service.find_sitting(session, LOCAL_LEARNER, sat.number), sat.clock()
        )
    assert graded is not None
    assert graded.row(sat.part).points == 0.0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_where_programs_cannot_be_run_all_is_to_be_read_and_it_says_so(
    client: TestClient, database: Database, content: Catalogue, clock: Clock
) -> None:
    client.app.state.code_labs = "off"  # type: ignore[attr-defined]
    assert "switched off here" in client.get("/interview/coding").text
    sitting = client.post("/interview/coding").headers["location"]
    shown = client.get(sitting).text
    assert "To be read, not run" in shown
    with database.read() as session:
        found = service.find_sitting(session, LOCAL_LEARNER, int(sitting.rpartition("/")[2]))
        asked = offers.interview_of(content, found).questions
        assert {each.kind for each in asked} == {"choice"}
        assert found.deadline_at - found.started_at == timedelta(minutes=sum(each.minutes for each in asked))
        right = next(option.id for option in asked[0].options if option.correct)
    client.post(f"{sitting}/answers", data={"part": asked[0].id, "answer": right, "final": "1"})
    wrong = next(option for option in asked[1].options if not option.correct)
    client.post(f"{sitting}/answers", data={"part": asked[1].id, "answer": wrong.id, "final": "1"})
    again = unescape(client.get(f"{sitting}?part={asked[1].id}.again").text)
    asked_again = f"“You chose ‘{wrong.text}’. {wrong.ask}”"  # the page writes an apostrophe as a typesetter does
    assert asked_again.replace("'", "’") in again.replace("'", "’")
    client.post(f"{sitting}/finish")
    client.post(f"{sitting}/expectation", data={"level": ""})
    assert asked[0].title in client.get(sitting).text
    with database.read() as session:
        evidence = service.list_evidence(session, LOCAL_LEARNER)
    assert {each.item_id for each in evidence} <= set(content.labs)
    assert sum(each.share or 0 for each in evidence) == 1.0


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_the_newest_submission_came_to_says_whether_programs_run(database: Database, clock: Clock) -> None:
    lab = shipped().labs["CL01"]
    with database.write() as session:
        assert "switched off" in codelabs.why_not_here(session, "off")
        row = codelabs.hand_in(session, LOCAL_LEARNER, lab, PROGRAM, "submit", 0, clock())
        ended = update(CodeSubmission).where(CodeSubmission.id == row.id)
        session.execute(ended.values(status="failed", detail=f"{codelabs.NOT_HERE}: no bubblewrap."))
        assert codelabs.why_not_here(session, "sandbox") == f"{codelabs.NOT_HERE}: no bubblewrap."
        session.execute(ended.values(status="judged", detail=""))
        assert codelabs.why_not_here(session, "sandbox") == ""
        session.rollback()


def test_beside_a_wrong_result_other_checks_count_half_and_returning_nothing() -> None:
    lab = shipped().labs["CL01"]  # sum, then messages
    cheap = [Check(name="messages", ranks=ranks, passed=True, expected="", seen="") for ranks in (2, 3, 4)]
    returns = [Check(name="finishes", ranks=ranks, passed=True, expected="", seen="") for ranks in (2, 3, 4)]
    assert share_of(Verdict(lab="CL01", passed=False, score=0.6, checks=(*returns, *cheap)), lab) == 0.25
    assert share_of(Verdict(lab="CL01", passed=False, score=0.3, checks=tuple(returns)), lab) == 0.0
    some = [
        Check(name=name, ranks=ranks, passed=False, expected="", seen="", held=0.75)
        for name in ("sum", "messages")
        for ranks in (2, 3, 4)
    ]
    flat = [*cheap[:2], Check(name="messages", ranks=4, passed=False, expected="6 messages", seen="9")]
    right = [Check(name="sum", ranks=ranks, passed=True, expected="", seen="") for ranks in (2, 3, 4)]
    assert share_of(Verdict(lab="CL01", passed=False, score=0.9, checks=(*right, *flat)), lab) == 0.5, "on 4 ranks"
    share = share_of(Verdict(lab="CL01", passed=False, score=0.0, checks=tuple(some)), lab)
    assert share == round((0.75 + 0.75 * (0.5 + 0.5 * 0.75)) / 2, 4), "what ends one case leaves the others"


def test_every_program_to_read_has_one_right_answer_that_the_judge_gives() -> None:
    labs = shipped().labs
    for lab in labs.values():
        for solution in lab.wrong:
            question = coding.task(f"{lab.id}.{coding.READ}.{solution.name}", labs)
            if question is not None:
                assert [each.id for each in question.options if each.correct] == [solution.says]
                assert not {each.id for each in question.options} & set(solution.also), "it shows that as well"
                assert "mistake" not in question.shown, "a program does not say what is wrong with it"
    assert coding.task("CL01.read.nothing", labs) is None
    assert coding.task("CL99.write", labs) is None
