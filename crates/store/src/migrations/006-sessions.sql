-- A session: the bot and the thread within a conversation (decision 026), '' for the conversation itself. Rows of
-- earlier versions get the session of their event, as far as it is known.
ALTER TABLE events ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE transcript ADD COLUMN session TEXT NOT NULL DEFAULT '';
ALTER TABLE artifacts ADD COLUMN session TEXT NOT NULL DEFAULT '';
--! sqlite
UPDATE events SET session = coalesce(nullif(
        coalesce(replace(body, '\u0000', '\ufffd') ->> '$.event.bot_id', '') || {unit} ||
        coalesce(replace(body, '\u0000', '\ufffd') ->> '$.event.thread_id', ''), {unit}), '')
    WHERE conversation_seq IS NOT NULL
        AND (body LIKE '%"bot_id":"%' OR body LIKE '%"thread_id":"%');
--! postgres
UPDATE events SET session = coalesce(nullif(
        coalesce(CAST(replace(body, '\u0000', '\ufffd') AS JSON) #>> '{event,bot_id}', '') || {unit} ||
        coalesce(CAST(replace(body, '\u0000', '\ufffd') AS JSON) #>> '{event,thread_id}', ''), {unit}), '')
    WHERE conversation_seq IS NOT NULL
        AND (body LIKE '%"bot_id":"%' OR body LIKE '%"thread_id":"%');
--! both
UPDATE runs SET session = coalesce((SELECT e.session FROM events e WHERE e.seq = runs.event_seq), '')
    WHERE conversation_id IN (SELECT conversation_id FROM events WHERE session <> '');
UPDATE events SET session = coalesce((SELECT r.session FROM runs r
        WHERE r.workspace_id = events.workspace_id AND r.run_id = events.run_id), '')
    WHERE conversation_seq IS NULL AND run_id IS NOT NULL
        AND conversation_id IN (SELECT conversation_id FROM runs WHERE session <> '');
UPDATE artifacts SET session = coalesce((SELECT r.session FROM runs r
        WHERE r.workspace_id = artifacts.workspace_id AND r.run_id = artifacts.run_id), '')
    WHERE run_id IS NOT NULL AND conversation_id IN (SELECT conversation_id FROM runs WHERE session <> '');
UPDATE transcript SET session = coalesce(
        (SELECT nullif(e.session, '') FROM events e WHERE e.workspace_id = transcript.workspace_id
            AND e.event_id = transcript.event_id AND e.conversation_id = transcript.conversation_id
            AND e.conversation_seq = transcript.event_seq),
        {unit} || thread_id, '')
    WHERE thread_id IS NOT NULL
        OR conversation_id IN (SELECT conversation_id FROM events WHERE session <> '');
DROP INDEX transcript_by_thread;
CREATE INDEX transcript_by_session ON transcript
    (workspace_id, conversation_id, session, event_seq, seq) WHERE session <> '';
-- All sessions of a conversation had one state: each gets a copy of it, and the conversation keeps it.
--! sqlite
INSERT INTO state (workspace_id, owner, name, size, version, expires_at, updated_at, value)
    SELECT s.workspace_id, s.owner || t.session, s.name, s.size, s.version, s.expires_at, s.updated_at, s.value
    FROM (SELECT DISTINCT workspace_id, conversation_id, session FROM runs WHERE session <> '') t
    JOIN state s ON s.workspace_id = t.workspace_id AND s.owner LIKE '["conversation",%'
        AND s.owner ->> '$[3]' = t.conversation_id;
INSERT INTO usage (workspace_id, kind, owner, bytes, entries)
    SELECT u.workspace_id, u.kind, u.owner || t.session, u.bytes, u.entries
    FROM (SELECT DISTINCT workspace_id, conversation_id, session FROM runs WHERE session <> '') t
    JOIN usage u ON u.workspace_id = t.workspace_id AND u.kind = 'state' AND u.owner LIKE '["conversation",%'
        AND u.owner ->> '$[3]' = t.conversation_id;
--! postgres
INSERT INTO state (workspace_id, owner, name, size, version, expires_at, updated_at, value)
    SELECT s.workspace_id, s.owner || t.session, s.name, s.size, s.version, s.expires_at, s.updated_at, s.value
    FROM (SELECT DISTINCT workspace_id, conversation_id, session FROM runs WHERE session <> '') t
    JOIN state s ON s.workspace_id = t.workspace_id AND s.owner LIKE '["conversation",%'
        AND CAST(s.owner AS JSON) ->> 3 = t.conversation_id;
INSERT INTO usage (workspace_id, kind, owner, bytes, entries)
    SELECT u.workspace_id, u.kind, u.owner || t.session, u.bytes, u.entries
    FROM (SELECT DISTINCT workspace_id, conversation_id, session FROM runs WHERE session <> '') t
    JOIN usage u ON u.workspace_id = t.workspace_id AND u.kind = 'state' AND u.owner LIKE '["conversation",%'
        AND CAST(u.owner AS JSON) ->> 3 = t.conversation_id;
