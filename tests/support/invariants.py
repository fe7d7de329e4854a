"""What has to be true of the rows at any time, in raw SQL that shares nothing with the store."""

from __future__ import annotations

from tests.support.database import Database

_ALWAYS = {
    "targets_done is the count of done and failed targets": """
        SELECT id FROM batch_job AS j WHERE targets_done <> (
            SELECT count(*) FROM batch_target AS t
            WHERE t.job_id = j.id AND t.status IN ('done', 'failed'))
    """,
    "a target's nbytes are those of its result": """
        SELECT job_id, idx FROM batch_target WHERE nbytes <> coalesce({octets}, 0)
    """,
    "a job's nbytes are those of its results": """
        SELECT id FROM batch_job AS j WHERE nbytes <> (
            SELECT coalesce(sum({octets}), 0) FROM batch_target AS t WHERE t.job_id = j.id)
    """,
    "the kept total is the sum over the jobs": """
        SELECT kept FROM (SELECT coalesce(sum(nbytes), 0) AS kept FROM batch_total) AS total
        WHERE kept <> (SELECT coalesce(sum(nbytes), 0) FROM batch_job)
    """,
    "no target without its job": """
        SELECT job_id FROM batch_target WHERE job_id NOT IN (SELECT id FROM batch_job)
    """,
    "no turn without its job": """
        SELECT job_id FROM batch_turn WHERE job_id NOT IN (SELECT id FROM batch_job)
    """,
    "a turn is held with all three of its columns or with none": """
        SELECT job_id FROM batch_turn
        WHERE (holder IS NULL) <> (token IS NULL) OR (token IS NULL) <> (held_until IS NULL)
    """,
    "a turn of an ended job is held": """
        SELECT t.job_id FROM batch_turn AS t JOIN batch_job AS j ON j.id = t.job_id
        WHERE j.status NOT IN ('queued', 'running') AND t.token IS NULL
    """,
    "a target is running exactly while its turn is held": """
        SELECT g.job_id, g.idx FROM batch_target AS g JOIN batch_turn AS t ON t.job_id = g.job_id
        WHERE (g.status = 'running') <> (t.token IS NOT NULL AND t.next_idx = g.idx)
    """,
    "a turn points at the lowest unfinished target": """
        SELECT job_id FROM batch_turn AS t WHERE next_idx <> (
            SELECT coalesce(min(idx), -1) FROM batch_target AS g
            WHERE g.job_id = t.job_id AND g.status IN ('pending', 'running'))
    """,
    "a turn counts its failed targets": """
        SELECT job_id FROM batch_turn AS t WHERE targets_failed <> (
            SELECT count(*) FROM batch_target AS g
            WHERE g.job_id = t.job_id AND g.status = 'failed')
    """,
    "no two jobs have the same turn": """
        SELECT turn FROM batch_turn GROUP BY turn HAVING count(*) > 1
    """,
    "no turn is beyond the last number given": """
        SELECT job_id FROM batch_turn WHERE turn > {last_turn}
    """,
    "0 <= done <= total": """
        SELECT id FROM batch_job WHERE targets_done < 0 OR targets_done > targets_total
    """,
}
_SUBMITTED = {
    "a live job has its turn": """
        SELECT id FROM batch_job WHERE status IN ('queued', 'running')
        AND id NOT IN (SELECT job_id FROM batch_turn)
    """,
    "a job has all of its targets": """
        SELECT id FROM batch_job AS j WHERE targets_total <> (
            SELECT count(*) FROM batch_target AS t WHERE t.job_id = j.id)
    """,
    "no target runs without a turn": """
        SELECT job_id FROM batch_target
        WHERE status = 'running' AND job_id NOT IN (SELECT job_id FROM batch_turn)
    """,
    "the terminal status is told by the targets": """
        SELECT id, status FROM (
            SELECT j.id, j.status, j.error, j.targets_total AS total,
                sum(CASE WHEN t.status = 'done' THEN 1 ELSE 0 END) AS done,
                sum(CASE WHEN t.status = 'failed' THEN 1 ELSE 0 END) AS failed
            FROM batch_job AS j JOIN batch_target AS t ON t.job_id = j.id
            GROUP BY j.id, j.status, j.error, j.targets_total
        ) AS told
        WHERE (status = 'done' AND done <> total)
            OR (status = 'failed' AND error = '' AND failed <> total)
            OR (status = 'partial' AND (done = 0 OR failed = 0 OR done + failed <> total))
            OR (status = 'queued' AND done + failed > 0)
    """,
}
_LOGGED = {
    "a target finishes once": """
        SELECT job_id, idx FROM finish_log GROUP BY job_id, idx HAVING count(*) > 1
    """,
    "an attempt finishes once": """
        SELECT token FROM finish_log WHERE token IS NOT NULL GROUP BY token HAVING count(*) > 1
    """,
    "a target finishes under a token": "SELECT job_id, idx FROM finish_log WHERE token IS NULL",
    "a job ends once": "SELECT job_id FROM end_log GROUP BY job_id HAVING count(*) > 1",
}


def broken(database: Database, *, submitted: bool = True, logged: bool = False) -> list[str]:
    """The rules that are broken, with the first few rows that break them.

    ``submitted``: all jobs came by a submit, not by hand. ``logged``: the database logs finishes,
    and nothing was written by hand.
    """
    rules = _ALWAYS | (_SUBMITTED if submitted else {}) | (_LOGGED if logged else {})
    found = []
    for rule, sql in rules.items():
        octets = database.octets("result")
        rows = database.query(sql.format(octets=octets, last_turn=database.last_turn))
        if rows:
            found.append(f"{rule}: {rows[:5]}")
    return found + database.damage()
