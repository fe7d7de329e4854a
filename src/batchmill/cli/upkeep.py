"""``cancel``, ``delete``, ``sweep`` and ``evict``: commands that end jobs or remove them."""

from __future__ import annotations

from typing import Any

from batchmill.cli import options, screen
from batchmill.cli.database import DEFAULT_URL, Place, open_store
from batchmill.cli.errors import CommandError
from batchmill.cli.reading import find_job
from batchmill.cli.values import bytes_text, plural


def cancel(
    job_id: options.JobId,
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Cancel a job: what is in flight finishes, nothing further starts."""
    with open_store(Place(db, schema)) as store:
        find_job(store, job_id)
        ended = store.cancel_job(job_id, now=store.now())
        if ended is None:
            status = find_job(store, job_id).status
            raise CommandError(f"nothing to cancel: the job has ended already ({status})")
    _say(as_json, f"Cancelled {job_id}.", {"cancelled": True, "id": job_id})


def delete(
    job_id: options.JobId,
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Delete a job with its targets and results, whatever its status."""
    with open_store(Place(db, schema)) as store:
        find_job(store, job_id)
        if not store.delete_job(job_id):
            raise CommandError(f"no such job: {job_id}")
    _say(as_json, f"Deleted {job_id}.", {"deleted": True, "id": job_id})


def sweep(
    *,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    ttl: options.Ttl = options.A_DAY,
    as_json: options.Json = False,
) -> None:
    """Remove every job that was last used longer ago than --ttl, live ones too."""
    with open_store(Place(db, schema)) as store:
        removed = store.sweep(now=store.now(), ttl=ttl)
        left = store.nbytes()
    _say_removed(as_json, "Swept", removed, left)


def evict(
    *,
    max_bytes: options.MaxBytes,
    db: options.Db = DEFAULT_URL,
    schema: options.Schema = None,
    as_json: options.Json = False,
) -> None:
    """Remove finished jobs, longest unused first, until the results fit --max-bytes."""
    with open_store(Place(db, schema)) as store:
        removed = store.evict_oldest(max_bytes=max_bytes)
        left = store.nbytes()
    _say_removed(as_json, "Evicted", removed, left)


def _say_removed(as_json: bool, verb: str, removed: int, left: int) -> None:
    text = f"{verb} {plural(removed, 'job')}; results now take {bytes_text(left)}."
    _say(as_json, text, {"removed": removed, "nbytes": left})


def _say(as_json: bool, text: str, value: dict[str, Any]) -> None:
    if as_json:
        screen.print_json(value)
    else:
        screen.out().print(text)
