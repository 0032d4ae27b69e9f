-- Version 1, frozen: every data folder since the first one upgrades from here.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE events (
    seq              {serial},
    workspace_id     TEXT NOT NULL,
    source           TEXT NOT NULL,
    event_id         TEXT NOT NULL,
    body_hash        {blob} NOT NULL,
    event_type       TEXT NOT NULL,
    conversation_id  TEXT,
    conversation_seq BIGINT,
    run_id           TEXT,
    body             TEXT,
    created_at       BIGINT NOT NULL,
    UNIQUE (workspace_id, event_id, source)
);
CREATE INDEX events_by_conversation ON events (workspace_id, conversation_id, seq);

CREATE TABLE conversations (
    workspace_id    TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    bucket          BIGINT NOT NULL,
    event_seq       BIGINT NOT NULL,
    transcript_seq  BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, conversation_id)
) {by_key};
CREATE INDEX conversations_by_time ON conversations (workspace_id, updated_at);

CREATE TABLE runs (
    workspace_id     TEXT NOT NULL,
    run_id           TEXT NOT NULL,
    event_seq        BIGINT NOT NULL,
    event_id         TEXT NOT NULL,
    agent            TEXT NOT NULL,
    runner_id        TEXT NOT NULL,
    conversation_id  TEXT,
    conversation_seq BIGINT,
    transcript_seq   BIGINT,
    queue            TEXT NOT NULL,
    status           TEXT NOT NULL,
    attempt          BIGINT NOT NULL,
    epoch            BIGINT NOT NULL,
    grant_hash       TEXT,
    on_interrupt     TEXT NOT NULL,
    deadline_ms      BIGINT NOT NULL,
    surface          TEXT,
    last_seq         BIGINT NOT NULL,
    reserved_seq     BIGINT NOT NULL,
    effects          BIGINT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    steers           BIGINT NOT NULL,
    steered_seq      BIGINT,
    asked            BIGINT NOT NULL DEFAULT 0,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    finished_at      BIGINT,
    error            TEXT,
    usage            TEXT,
    isolation        TEXT,
    PRIMARY KEY (workspace_id, run_id)
) {by_key};
CREATE INDEX runs_open ON runs
    (workspace_id, conversation_id, status, conversation_seq, queue, finished_at)
    WHERE finished_at IS NULL;
CREATE INDEX runs_by_conversation ON runs (conversation_id, run_id);

CREATE TABLE grants (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
) {by_key};

CREATE TABLE results (
    run_id    TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (run_id, first_seq)
) {by_key};

CREATE TABLE diagnostics (
    id         {serial},
    run_id     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    message    TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX diagnostics_by_run ON diagnostics (run_id, id);

CREATE TABLE transcript (
    id              {serial},
    workspace_id    TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    event_seq       BIGINT NOT NULL,
    seq             BIGINT NOT NULL,
    item_id         TEXT NOT NULL,
    thread_id       TEXT,
    role            TEXT NOT NULL,
    event_type      TEXT,
    actor_id        TEXT,
    event_id        TEXT,
    run_id          TEXT,
    text            TEXT,
    body            TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    UNIQUE (workspace_id, conversation_id, event_seq, seq)
);
--! sqlite
CREATE VIRTUAL TABLE search USING fts5(
    terms, content='', contentless_delete=1, detail=none, tokenize='ascii');
--! postgres
CREATE TABLE search (
    id    BIGINT PRIMARY KEY,
    terms INTEGER[] NOT NULL
);
ALTER TABLE search ALTER COLUMN terms SET STATISTICS 0;
CREATE INDEX search_by_term ON search USING gin (terms) WITH (gin_pending_list_limit = 16384);
--! both
CREATE INDEX transcript_by_thread ON transcript
    (workspace_id, conversation_id, thread_id, event_seq, seq) WHERE thread_id IS NOT NULL;

CREATE TABLE state (
    workspace_id TEXT NOT NULL,
    owner        TEXT NOT NULL,
    name         TEXT NOT NULL,
    size         BIGINT NOT NULL,
    version      BIGINT NOT NULL,
    expires_at   BIGINT,
    updated_at   BIGINT NOT NULL,
    value        TEXT NOT NULL,
    PRIMARY KEY (workspace_id, owner, name)
) {by_key};
CREATE INDEX state_expiring ON state (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE storage (
    workspace_id TEXT NOT NULL,
    owner        TEXT NOT NULL,
    name         TEXT NOT NULL,
    size         BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    value        {blob} NOT NULL,
    PRIMARY KEY (workspace_id, owner, name)
);

CREATE TABLE usage (
    workspace_id TEXT NOT NULL,
    kind         TEXT NOT NULL,
    owner        TEXT NOT NULL,
    bytes        BIGINT NOT NULL,
    entries      BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, kind, owner)
) {by_key};

CREATE TABLE artifacts (
    workspace_id    TEXT NOT NULL,
    artifact_id     TEXT NOT NULL,
    sha256          TEXT NOT NULL,
    size            BIGINT NOT NULL,
    name            TEXT,
    mime_type       TEXT NOT NULL,
    conversation_id TEXT,
    run_id          TEXT,
    agent           TEXT,
    metadata        TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    PRIMARY KEY (workspace_id, artifact_id)
) {by_key};
CREATE INDEX artifacts_by_hash ON artifacts (sha256);
CREATE INDEX artifacts_by_conversation ON artifacts
    (workspace_id, conversation_id, created_at, artifact_id);
CREATE INDEX artifacts_by_run ON artifacts (workspace_id, run_id, created_at, artifact_id)
    WHERE run_id IS NOT NULL;
CREATE INDEX artifacts_by_time ON artifacts (workspace_id, created_at, artifact_id);
CREATE INDEX artifacts_by_age ON artifacts (created_at);
CREATE INDEX artifacts_expiring ON artifacts (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE outbox (
    id           {serial},
    workspace_id TEXT NOT NULL,
    delivery_id  TEXT NOT NULL UNIQUE,
    surface      TEXT NOT NULL,
    target       TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    sequence     BIGINT NOT NULL,
    payload      TEXT NOT NULL,
    status       TEXT NOT NULL,
    attempts     BIGINT NOT NULL,
    error        TEXT,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL
);
CREATE INDEX outbox_open ON outbox (target, id, surface) WHERE status IN ('pending', 'claimed');
CREATE INDEX outbox_by_run ON outbox (run_id, id);

CREATE TABLE audit (
    id           {serial},
    workspace_id TEXT NOT NULL,
    run_id       TEXT,
    calls        BIGINT NOT NULL,
    denials      BIGINT NOT NULL,
    first_at     BIGINT NOT NULL,
    last_at      BIGINT NOT NULL,
    body         TEXT NOT NULL
);
CREATE INDEX audit_by_run ON audit (workspace_id, run_id, id);
CREATE INDEX audit_denials ON audit (workspace_id, id) WHERE denials > 0;

CREATE TABLE open_calls (
    workspace_id TEXT NOT NULL,
    call_id      TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, call_id)
) {by_key};

CREATE TABLE approvals (
    workspace_id    TEXT NOT NULL,
    approval_id     TEXT NOT NULL,
    kind            TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    agent           TEXT NOT NULL,
    runner_id       TEXT NOT NULL,
    conversation_id TEXT,
    actor           TEXT,
    action          TEXT NOT NULL,
    target          TEXT NOT NULL,
    payload         TEXT NOT NULL,
    nonce           TEXT NOT NULL,
    delivery_id     TEXT NOT NULL,
    surface         TEXT NOT NULL,
    lane            TEXT NOT NULL,
    sequence        BIGINT NOT NULL,
    delivery        TEXT NOT NULL,
    status          TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    answered_at     BIGINT,
    answered_by     TEXT,
    PRIMARY KEY (workspace_id, approval_id)
) {by_key};
CREATE INDEX approvals_by_run ON approvals (run_id, approval_id);
CREATE INDEX approvals_pending ON approvals (workspace_id, approval_id) WHERE status = 'pending';
CREATE INDEX approvals_due ON approvals (expires_at) WHERE status = 'pending';

CREATE TABLE steering (
    workspace_id     TEXT NOT NULL,
    run_id           TEXT NOT NULL,
    conversation_seq BIGINT NOT NULL,
    event_seq        BIGINT NOT NULL,
    new_run          TEXT NOT NULL,
    PRIMARY KEY (workspace_id, run_id, conversation_seq)
) {by_key};

CREATE TABLE tool_calls (
    workspace_id TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    attempt      BIGINT NOT NULL,
    epoch        BIGINT NOT NULL,
    tool         TEXT NOT NULL,
    risk         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    finished_at  BIGINT,
    args         TEXT NOT NULL,
    output       TEXT,
    PRIMARY KEY (workspace_id, run_id, tool_call_id)
) {by_key};
CREATE INDEX tool_calls_open ON tool_calls (epoch) WHERE output IS NULL;

CREATE TABLE model_calls (
    id            {serial},
    workspace_id  TEXT NOT NULL,
    run_id        TEXT NOT NULL,
    model         TEXT NOT NULL,
    method        TEXT NOT NULL,
    outcome       TEXT NOT NULL,
    usage         TEXT,
    tokens        BIGINT,
    cost_micro    BIGINT,
    charged_micro BIGINT NOT NULL,
    duration_ms   BIGINT NOT NULL,
    created_at    BIGINT NOT NULL
);
CREATE INDEX model_calls_by_run ON model_calls (run_id, id);
CREATE TABLE model_calls_open (
    workspace_id   TEXT NOT NULL,
    call_id        TEXT NOT NULL,
    epoch          BIGINT NOT NULL,
    run_id         TEXT NOT NULL,
    agent          TEXT NOT NULL,
    model          TEXT NOT NULL,
    method         TEXT NOT NULL,
    reserved_micro BIGINT NOT NULL,
    day            BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, call_id)
) {by_key};
CREATE TABLE spend (
    workspace_id TEXT NOT NULL,
    day          BIGINT NOT NULL,
    agent        TEXT NOT NULL,
    model        TEXT NOT NULL,
    calls        BIGINT NOT NULL,
    unpriced     BIGINT NOT NULL,
    tokens       BIGINT NOT NULL,
    cost_micro   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day, agent, model)
) {by_key};
CREATE INDEX spend_by_day ON spend (day);

CREATE TABLE run_rates (
    workspace_id TEXT NOT NULL,
    span_ms      BIGINT NOT NULL,
    slot         BIGINT NOT NULL,
    status       TEXT NOT NULL,
    grade        BIGINT NOT NULL,
    runs         BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, span_ms, slot, status, grade)
) {by_key};
CREATE INDEX run_rates_by_age ON run_rates (span_ms, slot);
CREATE TABLE model_rates (
    workspace_id  TEXT NOT NULL,
    span_ms       BIGINT NOT NULL,
    slot          BIGINT NOT NULL,
    model         TEXT NOT NULL,
    calls         BIGINT NOT NULL,
    failed        BIGINT NOT NULL,
    told          BIGINT NOT NULL,
    input_tokens  BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    priced        BIGINT NOT NULL,
    cost_micro    BIGINT NOT NULL,
    last_ok_at    BIGINT,
    last_error    TEXT,
    last_error_at BIGINT,
    PRIMARY KEY (workspace_id, span_ms, slot, model)
) {by_key};
CREATE INDEX model_rates_by_age ON model_rates (span_ms, slot);

CREATE TABLE records (
    workspace_id TEXT NOT NULL,
    module       TEXT NOT NULL,
    record_id    TEXT NOT NULL,
    owner        TEXT NOT NULL,
    version      BIGINT NOT NULL,
    starts_at    BIGINT,
    ends_at      BIGINT,
    updated_at   BIGINT NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, module, record_id)
) {by_key};
CREATE INDEX records_by_owner ON records (workspace_id, module, owner, starts_at);
CREATE TABLE record_links (
    workspace_id TEXT NOT NULL,
    module       TEXT NOT NULL,
    record_id    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    status       TEXT NOT NULL,
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, module, record_id, actor)
) {by_key};
CREATE INDEX record_links_by_actor ON record_links (workspace_id, module, actor, record_id);
