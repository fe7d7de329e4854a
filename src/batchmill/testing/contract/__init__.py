"""The contract of a store, as pytest classes to subclass; importing this needs pytest.

Make one class for your store, with a fixture that gives an empty one::

    from batchmill.testing import StoreContract

    class TestMine(StoreContract):
        @pytest.fixture
        def store(self):
            return MyStore()

``StoreContract`` is all of it; ``RepositoryContract`` needs no JobStore. Where a store rightly
differs it says so with a ``capabilities`` attribute of its own.
"""

from __future__ import annotations

import pytest

# Before the modules are imported, so that a failed assert shows its values.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{name}"
        for name in (
            "bad_input",
            "cancelling",
            "counters",
            "eviction",
            "fences",
            "holds",
            "homes",
            "listing",
            "lookups",
            "marking",
            "outcomes",
            "repository",
            "rotation",
            "steps",
            "submitting",
            "sweeping",
            "waiting",
        )
    )
)

from batchmill.testing.contract import (  # noqa: E402 (see above)
    bad_input,
    cancelling,
    counters,
    eviction,
    fences,
    holds,
    homes,
    listing,
    lookups,
    marking,
    outcomes,
    repository,
    rotation,
    submitting,
    sweeping,
    waiting,
)
from batchmill.testing.contract.surface import (  # noqa: E402 (see above)
    Capabilities,
    Repository,
    Store,
)

__all__ = [
    "Capabilities",
    "JobStoreContract",
    "Repository",
    "RepositoryContract",
    "Store",
    "StoreContract",
]


class RepositoryContract(
    bad_input.BadInput,
    counters.Counters,
    counters.Refusals,
    counters.CounterRaces,
    eviction.Eviction,
    listing.JobLists,
    lookups.Lookups,
    marking.Marking,
    repository.JobRows,
    repository.JobStatuses,
    repository.TargetRows,
    sweeping.Sweeping,
):
    """The table of design.md section 3: what holds for jobs that are made by hand."""


class JobStoreContract(
    bad_input.BadJobInput,
    cancelling.Cancelling,
    eviction.BudgetInExchange,
    fences.Fences,
    holds.Holding,
    holds.Losing,
    homes.Homes,
    marking.MarkingSubmitted,
    outcomes.Storing,
    outcomes.Settling,
    outcomes.ByHand,
    rotation.Rotation,
    rotation.Serial,
    rotation.Claims,
    rotation.Queues,
    submitting.Submitting,
    submitting.Caps,
    submitting.SubmitRaces,
    sweeping.SweepingSubmitted,
    waiting.Waiting,
    waiting.BusySince,
):
    """Section 4 of design.md: submit, exchange, hold, release and cancel.

    It uses both halves: what runners do is looked at through the repository.
    """


class StoreContract(RepositoryContract, JobStoreContract):
    """Everything that a store promises."""
