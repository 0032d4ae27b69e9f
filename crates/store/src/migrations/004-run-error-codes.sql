-- The code of a run's error in a column of its own. PostgreSQL cannot keep U+0000 in a text.
ALTER TABLE runs ADD COLUMN error_code TEXT;
--! sqlite
UPDATE runs SET error_code = replace(error, '\u0000', '\ufffd') ->> 'code' WHERE error IS NOT NULL;
--! postgres
UPDATE runs SET error_code = CAST(replace(error, '\u0000', '\ufffd') AS JSON) ->> 'code'
    WHERE error IS NOT NULL;
