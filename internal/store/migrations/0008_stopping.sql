-- The rule of a run that stops single cells.

ALTER TABLE run ADD COLUMN stopping TEXT NOT NULL DEFAULT 'null'; -- JSON
