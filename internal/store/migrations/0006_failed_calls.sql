-- Calls of the engine that failed, in trials that failed.

ALTER TABLE trial ADD COLUMN failed_calls TEXT NOT NULL DEFAULT 'null'; -- JSON: counts by name
