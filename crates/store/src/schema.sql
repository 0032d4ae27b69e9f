-- The whole schema of a new database: the sum of `migrations/`, which a test compares with it.
-- Words in braces are filled in per database; `--! sqlite`, `--! postgres` and `--! both` begin parts for one of them
-- or for both. Times are Unix milliseconds. Every fact carries its workspace.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Events. The row outlives its body: after retention the key still rejects a second event.
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
    -- The bot and the thread within the conversation (`Session`); '' for the conversation itself.
    session          TEXT NOT NULL DEFAULT '',
    -- In this order it also finds an event by its id alone.
    UNIQUE (workspace_id, event_id, source)
);
CREATE INDEX events_by_conversation ON events (workspace_id, conversation_id, seq);

-- Counters that give a conversation its order.
CREATE TABLE conversations (
    workspace_id    TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    bucket          BIGINT NOT NULL,
    event_seq       BIGINT NOT NULL,
    transcript_seq  BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    -- The token that sent its first event: `token:NAME` or `admin`.
    begun_by        TEXT,
    PRIMARY KEY (workspace_id, conversation_id)
) {by_key};
CREATE INDEX conversations_by_time ON conversations (workspace_id, updated_at);
CREATE INDEX conversations_by_sender ON conversations (workspace_id, begun_by, updated_at)
    WHERE begun_by IS NOT NULL;

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
    -- Whether it takes messages that arrive while it runs, and the last that it has pulled.
    steers           BIGINT NOT NULL,
    steered_seq      BIGINT,
    -- Whether one of its calls has requested an approval, which its end has to cancel.
    asked            BIGINT NOT NULL DEFAULT 0,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    -- NULL while the run is queued or running.
    finished_at      BIGINT,
    error            TEXT,
    usage            TEXT,
    isolation        TEXT,
    -- The code within `error`.
    error_code       TEXT,
    session          TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, run_id)
) {by_key};
-- Lanes are looked up with every event and every terminal. The index covers those queries, else SQLite prefers to
-- scan the whole workspace; and it is used only by statements that repeat its condition.
-- With a list of two statuses SQLite would build a table for each look-up.
CREATE INDEX runs_open ON runs
    (workspace_id, conversation_id, status, conversation_seq, queue, finished_at)
    WHERE finished_at IS NULL;
CREATE INDEX runs_by_conversation ON runs (conversation_id, run_id);

-- The frozen authorization of runs, by content: most runs of a binding share one row.
CREATE TABLE grants (
    hash TEXT PRIMARY KEY,
    body TEXT NOT NULL
) {by_key};

-- Results, coalesced: a row covers first_seq..last_seq and keeps the boundaries.
CREATE TABLE results (
    run_id    TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq  BIGINT NOT NULL,
    body      TEXT NOT NULL,
    PRIMARY KEY (run_id, first_seq)
) {by_key};

-- What a run sent that has no sequence number: refused results, output after the terminal.
CREATE TABLE diagnostics (
    id         {serial},
    run_id     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    message    TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX diagnostics_by_run ON diagnostics (run_id, id);

-- The conversation as it is read: an answer is next to the event it answers (`event_seq`), whatever came in
-- between. The search index refers to `id`.
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
    session         TEXT NOT NULL DEFAULT '',
    UNIQUE (workspace_id, conversation_id, event_seq, seq)
);
-- The terms of items (`src/search/index.rs`), added after the items; `meta` holds the last indexed item.
--! sqlite
CREATE VIRTUAL TABLE search USING fts5(
    terms, content='', contentless_delete=1, detail=none, tokenize='ascii');
--! postgres
-- Without statistics the planner always uses the index. New entries wait in a list that every query reads;
-- `settle` empties it on a reader, long before the limit at which the writer would have to.
CREATE TABLE search (
    id    BIGINT PRIMARY KEY,
    terms INTEGER[] NOT NULL
);
ALTER TABLE search ALTER COLUMN terms SET STATISTICS 0;
CREATE INDEX search_by_term ON search USING gin (terms) WITH (gin_pending_list_limit = 16384);
--! both
CREATE INDEX transcript_by_session ON transcript
    (workspace_id, conversation_id, session, event_seq, seq) WHERE session <> '';

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

-- Blobs of runners. The value is last: lists read only the rest.
CREATE TABLE storage (
    workspace_id TEXT NOT NULL,
    owner        TEXT NOT NULL,
    name         TEXT NOT NULL,
    size         BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    value        {blob} NOT NULL,
    PRIMARY KEY (workspace_id, owner, name)
);

-- Usage of state and storage per owner; owner '' is all storage of the workspace.
CREATE TABLE usage (
    workspace_id TEXT NOT NULL,
    kind         TEXT NOT NULL,
    owner        TEXT NOT NULL,
    bytes        BIGINT NOT NULL,
    entries      BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, kind, owner)
) {by_key};

-- Metadata of bytes in the object store, by their hash.
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
    session         TEXT NOT NULL DEFAULT '',
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

-- Messages for surfaces: first in, first out per target.
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
    updated_at   BIGINT NOT NULL,
    waited_ms    BIGINT NOT NULL DEFAULT 0,
    next_attempt_at BIGINT
);
CREATE INDEX outbox_open ON outbox (target, id, surface) WHERE status IN ('pending', 'claimed');
CREATE INDEX outbox_by_run ON outbox (run_id, id);
CREATE INDEX outbox_unsuccessful ON outbox (workspace_id, status, id)
    WHERE status IN ('failed', 'unknown', 'discarded');

-- Calls of runners: a row holds the records of one or of many, oldest first.
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

-- Calls that have acted and not ended: each becomes a record when it ends, or at the next start.
CREATE TABLE open_calls (
    workspace_id TEXT NOT NULL,
    call_id      TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    body         TEXT NOT NULL,
    PRIMARY KEY (workspace_id, call_id)
) {by_key};

-- Actions that need approval. What they put into the outbox is fixed with the request.
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

-- Messages for an active run: pulled by it, or turned into runs later.
CREATE TABLE steering (
    workspace_id     TEXT NOT NULL,
    run_id           TEXT NOT NULL,
    conversation_seq BIGINT NOT NULL,
    event_seq        BIGINT NOT NULL,
    -- The run that the message becomes if it is never pulled.
    new_run          TEXT NOT NULL,
    PRIMARY KEY (workspace_id, run_id, conversation_seq)
) {by_key};

-- Tool calls that the host executes. One that may change something is recorded before it acts.
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

-- Model calls, and their sums per day, which outlive the rows. Budgets limit the charge of a call, which it has
-- even where its cost is unknown.
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
-- Model calls in progress: each becomes a row above when it ends, or at the next start.
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

-- Counters of ended runs with their durations, and of model calls, by minutes, ten minutes and two hours: so that a
-- week is shown without reading its rows. `grade` is a class of durations (`src/rates.rs`).
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
    -- Calls with known token counts, and calls of known cost.
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

-- Records of the project modules for an actor, and with whom they are shared. `source` is the namespace of the actors:
-- the source of their events, with the token if it has actors of its own; empty before schema 5.
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
    source       TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, module, source, owner, record_id)
) {by_key};
CREATE INDEX records_by_owner ON records (workspace_id, module, owner, source, starts_at);
CREATE TABLE record_links (
    workspace_id TEXT NOT NULL,
    module       TEXT NOT NULL,
    record_id    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    status       TEXT NOT NULL,
    updated_at   BIGINT NOT NULL,
    source       TEXT NOT NULL DEFAULT '',
    owner        TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (workspace_id, module, source, owner, record_id, actor)
) {by_key};
CREATE INDEX record_links_by_actor ON record_links (workspace_id, module, source, actor, record_id);
