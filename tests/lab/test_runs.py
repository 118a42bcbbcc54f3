"""A run's life in the database: queued fairly, claimed once, ended once, whoever dies."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from app.core.db import Database
from app.core.errors import DomainError, NotFound, SpecError
from app.core.models import Learner
from app.lab import presence, queries, results, service, work
from app.lab.folds import Folds
from app.lab.models import Chunk, Run
from app.lab.work import Claim, LeaseLost
from labs.spec.events import MeasurementEvent, PhaseEvent, ResultEvent
from tests.conftest import NOW
from tests.support import events

SPEC: dict[str, Any] = {
    "model": "gpt-mini",
    "training": {"steps": 10, "sequence": 32},
    "parallel": {"data": 2, "zero": 3},
}


def _submit(database: Database, learner: int = 1, spec: Any = SPEC, prediction: Any = None) -> int:
    with database.write() as session:
        return service.submit_run(session, learner, spec, prediction, NOW).id


def _claim(database: Database, name: str = "w1", place: Any = lambda spec: "CPU") -> Claim | None:
    with database.write() as session:
        return work.claim_next(session, name, place, NOW)


def _run(database: Database, run_id: int) -> Run:
    with database.read() as session:
        found = session.get(Run, run_id)
        assert found is not None
        return found


def _result(rank: int) -> ResultEvent:
    held = {"parameters": 1, "gradients": 1, "optimizer": 2 + rank, "total": 4 + rank}
    return events.result(rank, events.training_summary(model_state_bytes=held))


def test_a_bad_spec_queues_nothing_and_names_every_field(database: Database) -> None:
    bad = {
        "model": {"layers": 2, "hidden": 100, "heads": 7, "vocab": 256},
        "training": {"micro_batch": 0},
        "parallel": {"data": 9},
    }
    with pytest.raises(SpecError) as caught:
        _submit(database, spec=bad)
    assert {v.field for v in caught.value.violations} == {"model.heads", "training.micro_batch", "parallel.data"}
    with database.read() as session:
        assert session.query(Run).count() == 0


def test_a_prediction_is_locked_with_the_run(database: Database) -> None:
    said = {"model_state_bytes": {"value": "26 MB", "within": 1.1}, "payload_bytes_per_step": {"value": " "}}
    run = _run(database, _submit(database, prediction=said))
    assert run.prediction == {"model_state_bytes": {"text": "26 MB", "value": 26e6, "within": 1.1}}
    assert run.theory["state_layout"] == "fp32"


@pytest.mark.parametrize(
    ("prediction", "field"),
    [
        ({"model_state_bytes": {"value": "26 GB/s"}}, "prediction.model_state_bytes.value"),
        ({"model_state_bytes": {"value": "-3 MB"}}, "prediction.model_state_bytes.value"),
        ({"model_state_bytes": {"value": "3 MB", "within": 2}}, "prediction.model_state_bytes.within"),
        ({"luck": {"value": "3 MB"}}, "prediction.luck"),
        ({"model_state_bytes": 5}, "prediction.model_state_bytes"),
    ],
)
def test_a_prediction_that_cannot_be_read_starts_nothing(database: Database, prediction: Any, field: str) -> None:
    with pytest.raises(DomainError) as caught:
        _submit(database, prediction=prediction)
    assert [v.field for v in caught.value.violations] == [field]
    with database.read() as session:
        assert session.query(Run).count() == 0


def test_every_learners_first_run_comes_before_anybodys_second(database: Database) -> None:
    with database.write() as session:
        session.add(Learner(name="Ada", created_at=NOW))
    mine = [_submit(database) for _ in range(3)]
    hers = [_submit(database, learner=2) for _ in range(2)]
    with database.read() as session:
        order = [run.id for run in queries.list_queue(session)]
        positions = [service.queue_position(session, session.get(Run, run_id)) for run_id in order]  # type: ignore[arg-type]
    assert order == [mine[0], hers[0], mine[1], hers[1], mine[2]]
    assert positions == [0, 1, 2, 3, 4]


def test_who_submits_first_is_not_served_again_before_others_are(database: Database) -> None:
    with database.write() as session:
        session.add(Learner(name="Ada", created_at=NOW))
    mine = [_submit(database) for _ in range(2)]
    hers = _submit(database, learner=2)
    claims = [_claim(database) for _ in range(3)]
    assert [claim and claim.run_id for claim in claims] == [mine[0], hers, mine[1]]


def test_a_run_is_claimed_once_however_many_workers_are_nudged(database: Database) -> None:
    run_id = _submit(database)
    barrier, claims = threading.Barrier(5), []

    def take(name: str) -> None:
        barrier.wait()
        claims.append(_claim(database, name))

    threads = [threading.Thread(target=take, args=(f"w{i}",)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [claim for claim in claims if claim is not None]
    assert [claim.run_id for claim in taken] == [run_id]


def test_a_worker_takes_only_what_fits_its_devices(database: Database) -> None:
    _submit(database, spec=SPEC | {"device": "cuda"})
    fits = _submit(database, spec=SPEC | {"device": "cpu"})
    claim = _claim(database, place=lambda spec: None if spec.device == "cuda" else "CPU")
    assert claim is not None
    assert claim.run_id == fits


def test_chunks_are_numbered_without_gaps_and_keep_the_step(database: Database) -> None:
    run_id = _submit(database)
    claim = _claim(database)
    assert claim is not None
    for step in (1, 2, 3):
        with database.write() as session:
            assert work.append_chunk(session, claim, [events.step(step)], NOW) == step
    run = _run(database, run_id)
    assert (run.status, run.steps_done, run.chunks) == ("running", 3, 3)
    with database.read() as session:
        assert list(results.every_event(session, run_id)) == [events.step(number) for number in (1, 2, 3)]
        assert [chunk.sequence for chunk in queries.list_chunks(session, run_id, after=1)] == [2, 3]


def test_a_waiting_run_is_cancelled_at_once_an_active_one_is_asked_to_end(database: Database) -> None:
    waiting, active = _submit(database), None
    with database.write() as session:
        assert service.cancel_run(session, 1, waiting, NOW).status == "cancelled"
    active = _submit(database)
    claim = _claim(database)
    assert claim is not None
    with database.write() as session:
        assert service.cancel_run(session, 1, active, NOW).status == "starting"
        assert work.beat(session, claim, NOW), "the worker learns of it with its next beat"
        assert work.end_run(session, claim, "cancelled", NOW)
    assert _run(database, active).status == "cancelled"


def test_a_program_is_running_from_its_first_measurement_on(database: Database) -> None:
    """It has no steps, and its page says so also where what it measures was predicted and is kept back."""
    run_id = _submit(database, spec={"program": "collectives", "parallel": {"data": 2}})
    claim = _claim(database)
    assert claim is not None
    with database.write() as session:
        work.append_chunk(session, claim, [PhaseEvent(0.0, 0, "running", doing="measuring")], NOW)
    assert _run(database, run_id).status == "starting"
    with database.write() as session:
        work.append_chunk(session, claim, [MeasurementEvent(1.0, 0, "ring", 960.0, 1e-4, "s", "seconds")], NOW)
    assert _run(database, run_id).status == "running"


def test_a_run_ends_once(database: Database) -> None:
    run_id = _submit(database)
    claim = _claim(database)
    assert claim is not None
    with database.write() as session:
        work.append_chunk(session, claim, [_result(0), _result(1)], NOW)
        assert work.end_run(session, claim, "finished", NOW)
        assert not work.end_run(session, claim, "failed", NOW)
    run = _run(database, run_id)
    assert run.status == "finished"
    assert run.result is not None
    assert run.result["model_state_bytes"] == 5, "the worst rank counts"
    assert run.result["model_state_rank"] == 1


def test_a_run_without_every_ranks_result_has_not_finished(database: Database) -> None:
    run_id = _submit(database)
    claim = _claim(database)
    assert claim is not None
    with database.write() as session:
        work.append_chunk(session, claim, [_result(0)], NOW)
        work.end_run(session, claim, "finished", NOW)
    run = _run(database, run_id)
    assert run.status == "failed"
    assert run.failure is not None
    assert run.failure["cause"] == "no result"


def test_a_run_of_a_silent_worker_waits_again_and_is_told_from_its_first_start(database: Database) -> None:
    run_id = _submit(database)
    lost = _claim(database)
    assert lost is not None
    with database.write() as session:
        work.append_chunk(session, lost, [events.step(1), events.step(2)], NOW)
    later = NOW + timedelta(seconds=25)
    with database.write() as session:
        assert work.give_up_on_stale(session, later) == [run_id]
        assert work.give_up_on_stale(session, later) == []
    run = _run(database, run_id)
    assert (run.status, run.steps_done, run.worker, run.started_at) == ("queued", 0, None, None)
    assert run.phase.endswith("has said nothing for 25 s, so its ranks are gone too. It starts again by itself.")
    with pytest.raises(LeaseLost), database.write() as session:
        work.append_chunk(session, lost, [events.step(3)], later)
    claim = _claim(database)
    assert claim is not None
    assert claim.chunks == 2, "what was streamed, and that it starts again: sequences go on, so viewers do"
    with database.write() as session:
        work.append_chunk(session, claim, [events.step(1)], later, after=claim.chunks)
    with database.read() as session:
        run = session.get_one(Run, run_id)
        assert Folds().view(session, run).steps_done == 1
        assert [chunk.sequence for chunk in session.query(Chunk).order_by(Chunk.sequence)] == [1, 2, 3]


def test_a_run_that_nobody_took_in_time_has_expired_and_says_why(database: Database) -> None:
    run_id = _submit(database)
    with database.write() as session:
        assert work.expire_waiting(session, NOW + timedelta(hours=23)) == []
        late = NOW + timedelta(hours=25)
        assert work.expire_waiting(session, late) == [run_id]
        assert work.expire_waiting(session, late) == []
    run = _run(database, run_id)
    assert (run.status, run.ended_at) == ("expired", late)
    assert (run.failure or {})["cause"] == "expired"
    assert run.phase == "No worker took it within 24 h. No worker answers. Run it again."
    assert _claim(database) is None, "whoever comes too late finds it gone"
    with database.write() as session:
        service.cancel_run(session, 1, run_id, late)
    assert _run(database, run_id).status == "expired"


def test_a_result_of_an_earlier_start_counts_no_more(database: Database) -> None:
    run_id = _submit(database)
    first = _claim(database)
    assert first is not None
    with database.write() as session:
        work.append_chunk(session, first, [_result(0), _result(1)], NOW)
        assert work.requeue(session, first, "The worker was stopped.", NOW)
        assert not work.requeue(session, first, "The worker was stopped.", NOW), "it is not its any more"
    second = _claim(database)
    assert second is not None
    with database.write() as session:
        assert not work.requeue(session, second, "The worker was stopped.", NOW), "once is enough"
        work.end_run(session, second, "finished", NOW)
    assert (_run(database, run_id).failure or {})["cause"] == "no result"


def test_a_run_that_is_to_be_cancelled_is_not_started_again(database: Database) -> None:
    run_id = _submit(database)
    claim = _claim(database)
    assert claim is not None
    with database.write() as session:
        service.cancel_run(session, 1, run_id, NOW)
        assert not work.requeue(session, claim, "The worker was stopped.", NOW)


def test_a_silent_worker_is_given_up_on_and_can_write_no_more(database: Database) -> None:
    run_id = _submit(database)
    first = _claim(database)
    assert first is not None
    with database.write() as session:
        assert work.requeue(session, first, "The worker was stopped.", NOW)
    claim = _claim(database)
    assert claim is not None
    with database.write() as session:
        work.append_chunk(session, claim, [events.step(1)], NOW)
    with database.write() as session:
        assert work.give_up_on_stale(session, NOW + timedelta(seconds=19)) == []
        assert work.give_up_on_stale(session, NOW + timedelta(seconds=25)) == [run_id]
    run = _run(database, run_id)
    assert run.status == "failed"
    assert run.failure is not None
    assert run.failure["cause"] == "worker lost"
    assert "25 s" in run.failure["message"]
    for write in (
        lambda session: work.append_chunk(session, claim, [events.log("x")], NOW),
        lambda session: work.beat(session, claim, NOW),
    ):
        with pytest.raises(LeaseLost), database.write() as session:
            write(session)
    with database.write() as session:
        assert not work.end_run(session, claim, "finished", NOW)
    with database.read() as session:
        assert session.query(Chunk).count() == 2, "what was streamed before stays"


def test_only_so_many_runs_may_wait(database: Database) -> None:
    for _ in range(20):
        _submit(database)
    with pytest.raises(service.QueueFull, match="20 runs are waiting"):
        _submit(database)


def test_a_run_says_what_its_ranks_ran_on_and_not_what_the_worker_meant(database: Database) -> None:
    run_id = _submit(database, spec=SPEC | {"parallel": {"data": 1, "zero": 0}})
    claim = _claim(database, place=lambda spec: "8 × H200, NCCL")
    assert claim is not None
    with database.write() as session:
        work.append_chunk(session, claim, [_result(0)], NOW)
        work.end_run(session, claim, "finished", NOW)
    assert _run(database, run_id).device == "CPU, 1 rank over gloo"
    on_gpus = {"device": "cuda", "device_name": "NVIDIA H200", "backend": "nccl"}
    assert results.ran_on(on_gpus, 4) == "4 × NVIDIA H200, NCCL"
    assert results.ran_on({"program": "gemm"}, 1) is None


def test_somebody_elses_run_is_not_found(database: Database) -> None:
    run_id = _submit(database)
    with database.read() as session, pytest.raises(NotFound):
        service.find_run(session, 2, run_id)


def test_workers_come_and_go(database: Database) -> None:
    devices = [{"kind": "cpu", "name": "CPU, 2 cores", "backend": "gloo", "memory_bytes": 1}]
    with database.write() as session:
        presence.announce_worker(session, "w1", "device", devices, NOW, None)
        presence.announce_worker(session, "w1", "device", devices, NOW + timedelta(seconds=2), 7)
    with database.read() as session:
        (present,) = presence.workers_present(session, NOW + timedelta(seconds=10))
        assert present.run_id == 7
        assert presence.workers_present(session, NOW + timedelta(minutes=1)) == []
    with database.write() as session:
        presence.retire_worker(session, "w1")
    with database.read() as session:
        assert presence.workers_present(session, NOW) == []


def test_a_spec_of_another_release_is_left_to_a_worker_of_that_one(database: Database) -> None:
    of_another, ours = _submit(database), _submit(database)
    with database.write() as session:
        session.get_one(Run, of_another).spec = SPEC | {"program": "what comes next year"}
    claim = _claim(database)
    assert claim is not None
    assert claim.run_id == ours, "it keeps nobody waiting"
    assert _claim(database) is None
    assert _run(database, of_another).status == "queued"
    with database.write() as session:
        assert service.cancel_run(session, 1, of_another, NOW).status == "cancelled"
