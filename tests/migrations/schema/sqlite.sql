-- The schema after every revision, in the spelling of tests/migrations/support.py.
-- A change here is a change of every user's database: it needs a revision.
CREATE TABLE batch_job (
    id VARCHAR(64) NOT NULL,
    caller VARCHAR(255) NOT NULL,
    caller_class VARCHAR(255) NOT NULL,
    idem_key VARCHAR(255) NOT NULL,
    status VARCHAR(16) NOT NULL,
    error TEXT NOT NULL,
    targets_total BIGINT NOT NULL,
    targets_done BIGINT DEFAULT 0 NOT NULL,
    created_at BIGINT NOT NULL,
    lease BIGINT NOT NULL,
    nbytes BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT batch_job_pk PRIMARY KEY (id),
    CONSTRAINT batch_job_status_ck CHECK (status = 'queued' OR status = 'running' OR status = 'done' OR status = 'partial' OR status = 'failed' OR status = 'cancelled')
);
CREATE INDEX batch_job_caller_created_at_id_ix ON batch_job (caller, created_at, id);
CREATE INDEX batch_job_caller_idem_key_created_at_id_ix ON batch_job (caller, idem_key, created_at, id);
CREATE INDEX batch_job_created_at_id_ix ON batch_job (created_at, id);
CREATE INDEX batch_job_lease_id_ix ON batch_job (lease, id);
CREATE INDEX batch_job_status_caller_ix ON batch_job (status, caller) WHERE status IN ('queued', 'running');
CREATE TABLE batch_runner (
    id VARCHAR(64) NOT NULL,
    seen_at BIGINT NOT NULL,
    hold_for BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT batch_runner_pk PRIMARY KEY (id)
);
CREATE TABLE batch_target (
    job_id VARCHAR(64) NOT NULL,
    idx INTEGER NOT NULL,
    url TEXT NOT NULL,
    options TEXT NOT NULL,
    status VARCHAR(16) NOT NULL,
    error TEXT,
    hint TEXT,
    attempt INTEGER DEFAULT 0 NOT NULL,
    lost INTEGER DEFAULT 0 NOT NULL,
    nbytes BIGINT DEFAULT 0 NOT NULL,
    result TEXT,
    CONSTRAINT batch_target_job_id_fk FOREIGN KEY(job_id) REFERENCES batch_job (id) ON DELETE CASCADE,
    CONSTRAINT batch_target_pk PRIMARY KEY (job_id, idx),
    CONSTRAINT batch_target_status_ck CHECK (status = 'pending' OR status = 'running' OR status = 'done' OR status = 'failed')
);
CREATE TABLE batch_total (
    shard INTEGER NOT NULL,
    nbytes BIGINT DEFAULT 0 NOT NULL,
    turns BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT batch_total_pk PRIMARY KEY (shard)
);
CREATE TABLE batch_turn (
    job_id VARCHAR(64) NOT NULL,
    turn BIGINT NOT NULL,
    next_idx INTEGER NOT NULL,
    targets_failed INTEGER DEFAULT 0 NOT NULL,
    ready_at BIGINT DEFAULT 0 NOT NULL,
    busy_since BIGINT,
    queue VARCHAR(255) NOT NULL,
    home VARCHAR(64),
    holder VARCHAR(64),
    token VARCHAR(64),
    held_until BIGINT,
    CONSTRAINT batch_turn_job_id_fk FOREIGN KEY(job_id) REFERENCES batch_job (id) ON DELETE CASCADE,
    CONSTRAINT batch_turn_pk PRIMARY KEY (job_id)
);
CREATE INDEX batch_turn_holder_queue_turn_ix ON batch_turn (holder, queue, turn);
CREATE INDEX batch_turn_home_ix ON batch_turn (home);
CREATE TABLE batchmill_alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT batchmill_alembic_version_pkc PRIMARY KEY (version_num)
);
