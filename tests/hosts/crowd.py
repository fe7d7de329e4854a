"""What twenty processes do at once; importable, so that they can be spawned."""

from __future__ import annotations

from typing import Any

from batchmill.records import Admission, Limits
from batchmill.store import BatchRepository, create_store_engine
from tests.store.support import submit
from tests.store.workers import PATIENCE

WIDE = Limits(targets_per_job=10, jobs_per_caller=1000, jobs_total=1000)
FULL = Limits(targets_per_job=10, jobs_per_caller=1000, jobs_total=6)
TWO_EACH = Limits(targets_per_job=10, jobs_per_caller=2, jobs_total=1000)


def submit_at_once(number: int, barrier: Any, url: str) -> list[str]:
    """Five submits, each at the same moment as everybody else's; their answers."""
    engine = create_store_engine(url)
    store = BatchRepository(engine)
    store.count_live_jobs()  # connected before the start
    two = f"c{number % 2}"
    submits = [
        (f"a-{number}", {"idem_key": "the-key"}),
        (f"b-{number}", {"idem_key": "the-key", "caller": two}),
        (f"c-{number}", {"caller": f"own-{number}", "limits": FULL}),
        (f"d-{number}", {"idem_key": "the-key", "limits": FULL}),
        (f"e-{number}", {"caller": "one", "limits": TWO_EACH}),
    ]
    answers = []
    for job_id, given in submits:
        barrier.wait(PATIENCE)
        answers.append(_answer(submit(store, job_id, 5, **{"limits": WIDE} | given)))
    engine.dispose()
    return answers


def _answer(admission: Admission) -> str:
    if admission.rejected is not None:
        return admission.rejected.__name__
    return ("reused " if admission.reused else "made ") + str(admission.job_id)
