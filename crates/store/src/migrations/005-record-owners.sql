-- A record belongs to a person: to the actor of one source. The key starts with its owner, so that the same id of two
-- owners is two records. `source` is empty for records that were stored before it was known.
--! sqlite
DROP INDEX records_by_owner;
ALTER TABLE records RENAME TO records_of_schema_4;
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
INSERT INTO records (workspace_id, module, record_id, owner, version, starts_at, ends_at, updated_at, body)
    SELECT workspace_id, module, record_id, owner, version, starts_at, ends_at, updated_at, body
    FROM records_of_schema_4;
ALTER TABLE record_links RENAME TO record_links_of_schema_4;
DROP INDEX record_links_by_actor;
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
INSERT INTO record_links (workspace_id, module, record_id, actor, status, updated_at, owner)
    SELECT l.workspace_id, l.module, l.record_id, l.actor, l.status, l.updated_at, r.owner
    FROM record_links_of_schema_4 l JOIN records_of_schema_4 r ON r.workspace_id = l.workspace_id
        AND r.module = l.module AND r.record_id = l.record_id;
DROP TABLE record_links_of_schema_4;
DROP TABLE records_of_schema_4;
--! postgres
DROP INDEX records_by_owner;
DROP INDEX record_links_by_actor;
ALTER TABLE records ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE records DROP CONSTRAINT records_pkey;
ALTER TABLE records ADD PRIMARY KEY (workspace_id, module, source, owner, record_id);
ALTER TABLE record_links ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE record_links ADD COLUMN owner TEXT NOT NULL DEFAULT '';
UPDATE record_links SET owner = r.owner FROM records r WHERE r.workspace_id = record_links.workspace_id
    AND r.module = record_links.module AND r.record_id = record_links.record_id;
ALTER TABLE record_links DROP CONSTRAINT record_links_pkey;
ALTER TABLE record_links ADD PRIMARY KEY (workspace_id, module, source, owner, record_id, actor);
--! both
CREATE INDEX records_by_owner ON records (workspace_id, module, owner, source, starts_at);
CREATE INDEX record_links_by_actor ON record_links (workspace_id, module, source, actor, record_id);
