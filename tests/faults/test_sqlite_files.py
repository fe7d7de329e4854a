"""What can happen to a file: damage, read-only connections, a journal that makes commits wait.

These are SQLite's own; what any database can meet is in the files beside this one.
"""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing, suppress
from functools import partial

import pytest
from sqlalchemy import create_engine

from batchmill.errors import BatchmillError, StoreUnavailable
from batchmill.store import BatchRepository, transactions
from tests.faults.operations import WRITES, prepared
from tests.store.support import HOUR, done, exchange, finish, submit
from tests.support.fixtures import on_sqlite
from tests.support.sqlite import SqliteDatabase, copy_of

pytestmark = on_sqlite


def test_a_file_opened_read_only_can_be_read(database, store):
    """Reads work on a connection that may not write."""
    finish(store, "a", '"x"')
    engine = create_engine(f"sqlite:///file:{database.path}?mode=ro&uri=true")
    reader = BatchRepository(engine)
    assert reader.get_job("a").status == "done"
    assert [target.result for target in reader.get_targets("a")] == ['"x"']
    assert reader.stats().jobs == {"done": 1}
    with pytest.raises(StoreUnavailable, match="can't be written to"):
        submit(reader, "b")
    engine.dispose()


READS = {
    "get_job": lambda s: s.get_job("kept"),
    "get_targets": lambda s: s.get_targets("kept", max_bytes=10),
    "find_job_by_idem_key": lambda s: s.find_job_by_idem_key("c", "key-kept", now=0, ttl=HOUR),
    "count_live_jobs": lambda s: s.count_live_jobs(),
    "list_jobs": lambda s: s.list_jobs(),
    "stats": lambda s: s.stats(),
    "nbytes": lambda s: s.nbytes(),
}


@pytest.mark.parametrize("how", ["zeros", "noise", "cut off", "a few bits"])
def test_a_damaged_file(database, tmp_path, how):
    """Whichever page is damaged: it works all the same, or says so in an error of ours."""
    store = database.store()
    prepared(store, "exchange of three results")
    calls = {name: write.prepare for name, write in WRITES.items() if not write.steps}
    store.engine.dispose()
    size, pages = _settled(database)
    met = set()
    for page in range(pages):
        damaged = copy_of(database.path, tmp_path / f"{how}-{page}.db")
        _damage(damaged, page, size, how)
        met |= _try_all(damaged, calls)
        damaged.close()
    assert StoreUnavailable in met
    assert [kind for kind in met if not issubclass(kind, BatchmillError)] == []


def _settled(database: SqliteDatabase) -> tuple[int, int]:
    """Page size and number of pages, once everything is in the file itself."""
    with closing(sqlite3.connect(database.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return tuple(
            connection.execute(f"PRAGMA {n}").fetchone()[0] for n in ("page_size", "page_count")
        )


def _damage(database: SqliteDatabase, page: int, size: int, how: str) -> None:
    whole = bytearray(database.path.read_bytes())
    if how == "cut off":
        del whole[page * size :]
    elif how == "a few bits":
        chance = random.Random(page)
        used = [place for place, byte in enumerate(whole) if byte]
        for place in chance.sample(used, 3):
            whole[place] ^= 1 << chance.randrange(8)
    else:
        pattern = bytes(size) if how == "zeros" else (b"\xa5\x00\xff\x13" * size)[:size]
        whole[page * size : (page + 1) * size] = pattern
    database.path.write_bytes(whole)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b"running", b"runnmng"),
        (b"CREATE TABLE batch_job", b"CREATE \xff\xffBLE batch_job"),
    ],
    ids=["a status that is none", "a schema that is no text"],
)
def test_a_damaged_text(database, was, now):
    """What can't be decoded, or means nothing, is a database that can't be read."""
    submit(database.store(), "a")
    exchange(database.store())
    database.close()
    _settled(database)
    whole = database.path.read_bytes()
    assert was in whole
    database.path.write_bytes(whole.replace(was, now))
    with pytest.raises(StoreUnavailable, match="not a database that batchmill can read"):
        database.store().get_job("a")


class _Recording:
    """A store that notes the class of each error that comes out of it."""

    def __init__(self, store: BatchRepository) -> None:
        self._store = store
        self.met: set[type[BaseException]] = set()

    def __getattr__(self, name: str):
        found = getattr(self._store, name)
        return partial(self._call, found) if callable(found) else found

    def _call(self, method, *args, **named):
        try:
            return method(*args, **named)
        except Exception as error:
            self.met.add(type(error))
            raise


def _try_all(database: SqliteDatabase, calls) -> set[type[BaseException]]:
    """Each read and each write; the classes of the errors that came out of the store."""
    store = _Recording(database.store())
    for call in (*READS.values(), *(lambda s, p=prepare: p(s)(s) for prepare in calls.values())):
        with suppress(Exception):  # a test's own preparation may stumble over an empty answer
            call(store)
    return store.met


def test_a_reader_at_the_moment_of_a_commit(database, tmp_path):
    """In rollback-journal mode a commit waits for readers: busy, tried again, and done once.

    The engine is the application's own, so that it has no WAL.
    """
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as copy, closing(sqlite3.connect(database.path)) as source:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 0.01})
    store, pauses = BatchRepository(engine), []
    submit(store, "a", 2)
    (claim,) = exchange(store).claims
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM batch_job").fetchall()

    def pause(_seconds: float) -> None:
        pauses.append(1)
        if len(pauses) == 3:
            reader.execute("COMMIT")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions.time, "sleep", pause)
        answer = exchange(store, [done(claim, '"x"')])
    reader.close()
    assert len(pauses) == 3
    assert answer.stored == [claim.token]
    assert [again.idx for again in answer.claims] == [1]
    assert store.get_job("a").targets_done == 1
    assert store.nbytes() == 3
    engine.dispose()
