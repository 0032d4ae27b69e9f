-- Which token sent the first event of a conversation; unknown for the older ones.
ALTER TABLE conversations ADD COLUMN begun_by TEXT;
CREATE INDEX conversations_by_sender ON conversations (workspace_id, begun_by, updated_at)
    WHERE begun_by IS NOT NULL;
