"""Cases from the field about what an error tells, on a server: its driver quotes more than ours."""

from __future__ import annotations

import traceback

import pytest
from sqlalchemy import make_url

from batchmill.errors import NotMigrated, StoreBusy, StoreError, StoreUnavailable
from batchmill.store import BatchRepository, transactions
from batchmill.store.operations import jobs
from tests.store.support import job
from tests.support.fixtures import on_servers

SECRET = "hunter2"
SECRETS = (SECRET, "SELECT", "INSERT", "UPDATE", "FROM", "VALUES", "targets_total")


def told(error: BaseException | None) -> str:
    """All that any log would show of an error, whatever contexts it walks."""
    shown = []
    left = [error]
    while left:
        seen = left.pop()
        if seen is not None:
            shown += [*traceback.format_exception_only(seen), str(seen), repr(seen.args)]
            left += [seen.__cause__, seen.__context__]
    return "".join(shown)


def secrets_in(caught: pytest.ExceptionInfo) -> list[str]:
    """What must not have been told."""
    text = told(caught.value)
    assert caught.value.__cause__ is not None
    return [secret for secret in SECRETS if secret in text]


@on_servers
def test_case_s9_a_statement_that_the_server_does_not_understand(database, store):
    """Neither the line of SQL that it points into, nor the names in it."""
    database.alter("ALTER TABLE batch_target DROP COLUMN hint")
    with pytest.raises(NotMigrated) as caught:
        store.get_targets(SECRET)
    assert secrets_in(caught) == []


@on_servers
def test_case_s9_a_row_that_the_server_refuses(database, store):
    """Neither the row, nor a value of it."""
    database.alter(f"ALTER TABLE batch_job ADD CONSTRAINT odd CHECK (idem_key <> '{SECRET}')")
    with pytest.raises(StoreError, match="breaks one of its constraints") as caught:
        store.create_job(job("a", idem_key=SECRET, caller="SELECT"))
    assert secrets_in(caught) == []


@on_servers
def test_case_s9_a_key_that_is_taken(store, monkeypatch):
    """Neither the key, nor the statement."""
    monkeypatch.setattr(transactions, "PATIENCE", 0.0)
    store.create_job(job(SECRET))
    with pytest.raises(StoreBusy) as caught:
        store._transactions.write(lambda tx: tx.run_all(jobs.inserting(job(SECRET))))
    assert secrets_in(caught) == []


@on_servers
def test_case_s9_a_database_that_does_not_let_us_in(database):
    """Neither the password nor the URL."""
    url = make_url(database.url).set(database="nowhere", password=SECRET)
    store = BatchRepository(database.engine(url.render_as_string(hide_password=False)))
    with pytest.raises(StoreUnavailable) as caught:
        store.get_job("a")
    assert secrets_in(caught) == []
