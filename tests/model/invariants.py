"""What must hold after every step, recomputed from raw rows (design.md section 4).

Nothing here asks the store: only its rows, and what the machine itself remembers of its calls.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.model.rows import Row, Rows

LIVE = {"queued", "running"}
FINISHED = {"done", "failed"}


@dataclass(slots=True)
class History:
    """What the rows alone can't say.

    ``given``: the counters that a job was created with. ``submitted``: jobs that came by a
    submit; ``by_hand``: those of them that got targets, or running ones, by hand after they had
    ended. ``ended``: the terminal status that a job was last seen with. ``finished``: targets
    that were seen done or failed.
    """

    given: dict[str, tuple[int, int]] = field(default_factory=dict)
    submitted: set[str] = field(default_factory=set)
    by_hand: set[str] = field(default_factory=set)
    ended: dict[str, str] = field(default_factory=dict)
    finished: set[tuple[str, int]] = field(default_factory=set)

    def made(self, job_id: str, *, submitted: bool, done: int = 0, nbytes: int = 0) -> None:
        """A job of this id begins; what an earlier one of that id did is over."""
        self.forget({job_id})
        self.given[job_id] = (done, nbytes)
        if submitted:
            self.submitted.add(job_id)

    def forget(self, job_ids: set[str]) -> None:
        """These jobs are gone."""
        for job_id in job_ids:
            self.given.pop(job_id, None)
            self.ended.pop(job_id, None)
        self.submitted -= job_ids
        self.by_hand -= job_ids
        self.finished = {key for key in self.finished if key[0] not in job_ids}

    def check_and_remember(self, rows: Rows) -> None:
        """Every invariant; then take note of what has ended by now."""
        self.forget(set(self.given) - set(rows.jobs))
        check_counters(self, rows)
        check_no_orphan(rows)
        check_what_ended(self, rows)
        check_turns(self, rows)
        for job_id in rows.turns:
            check_turn(rows, job_id)
        check_in_flight(self, rows)
        self.ended = {key: row["status"] for key, row in rows.jobs.items() if ended(row)}
        self.finished = {key for key, row in rows.targets.items() if row["status"] in FINISHED}


def ended(job: Row) -> bool:
    return job["status"] not in LIVE


def result_bytes(target: Row) -> int:
    return 0 if target["result"] is None else len(target["result"].encode())


def check_counters(history: History, rows: Rows) -> None:
    """Counters are what the job was given plus what its rows say; the total is their sum."""
    assert set(history.given) == set(rows.jobs)
    done: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    for (job_id, _), target in rows.targets.items():
        assert target["nbytes"] == result_bytes(target)
        done[job_id] += target["status"] in FINISHED
        nbytes[job_id] += result_bytes(target)
    for job_id, job in rows.jobs.items():
        given_done, given_bytes = history.given[job_id]
        assert job["targets_done"] == given_done + done[job_id]
        assert job["nbytes"] == given_bytes + nbytes[job_id]
    assert rows.total_bytes == sum(job["nbytes"] for job in rows.jobs.values())


def check_no_orphan(rows: Rows) -> None:
    """Every target and every turn has its job; a submitted job has all its targets."""
    assert {job_id for job_id, _ in rows.targets} <= set(rows.jobs)
    assert set(rows.turns) <= set(rows.jobs)
    for job_id in rows.turns:
        idxs = [target["idx"] for target in rows.of_job(job_id)]
        assert idxs == list(range(rows.jobs[job_id]["targets_total"]))


def check_what_ended(history: History, rows: Rows) -> None:
    """A terminal status is never left or changed, a finished target stays finished."""
    for job_id, status in history.ended.items():
        assert rows.jobs[job_id]["status"] == status
    for key in history.finished:
        assert rows.targets[key]["status"] in FINISHED
    for (job_id, _), target in rows.targets.items():
        if target["status"] not in FINISHED and job_id in history.submitted - history.by_hand:
            assert (target["result"], target["error"], target["hint"]) == (None, None, None)


def check_turns(history: History, rows: Rows) -> None:
    """A turn for every live submitted job, and for none else but ended ones still in flight."""
    live = {key for key in history.submitted if not ended(rows.jobs[key])}
    in_flight = {key for key, turn in rows.turns.items() if turn["token"] is not None}
    assert set(rows.turns) <= history.submitted
    assert live <= set(rows.turns) <= live | in_flight
    numbers = [turn["turn"] for turn in rows.turns.values()]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers, default=0) <= rows.last_turn
    tokens = [turn["token"] for turn in rows.turns.values() if turn["token"] is not None]
    assert len(set(tokens)) == len(tokens)


def check_turn(rows: Rows, job_id: str) -> None:
    """A turn points at the target in flight, else at the lowest pending one, and counts failures.

    It has a holder, a token and an end of the hold, or none of them.
    """
    turn, targets = rows.turns[job_id], rows.of_job(job_id)
    pending = [target["idx"] for target in targets if target["status"] == "pending"]
    failed = sum(target["status"] == "failed" for target in targets)
    assert turn["targets_failed"] == failed
    hold = [turn["holder"], turn["token"], turn["held_until"]]
    if turn["token"] is None:
        assert hold == [None, None, None]
        assert turn["next_idx"] == min(pending)
    else:
        assert None not in hold
        assert rows.targets[job_id, turn["next_idx"]]["status"] == "running"
        assert all(idx > turn["next_idx"] for idx in pending)


def check_in_flight(history: History, rows: Rows) -> None:
    """A submitted job has one running target at the most, and that one has a hold."""
    running: dict[str, list[int]] = {}
    for (job_id, idx), target in rows.targets.items():
        if target["status"] == "running" and job_id in history.submitted - history.by_hand:
            running.setdefault(job_id, []).append(idx)
    held = {key: [turn["next_idx"]] for key, turn in rows.turns.items() if turn["token"]}
    assert running == held
