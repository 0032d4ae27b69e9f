-- Deliveries are retried by time: how long one has waited so far, and when it is tried next.
ALTER TABLE outbox ADD COLUMN waited_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN next_attempt_at BIGINT;
CREATE INDEX outbox_unsuccessful ON outbox (workspace_id, status, id)
    WHERE status IN ('failed', 'unknown', 'discarded');
