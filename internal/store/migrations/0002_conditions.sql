-- The images that programs of a run come from, and what each trial was measured under.

ALTER TABLE run ADD COLUMN images TEXT NOT NULL DEFAULT 'null'; -- JSON

ALTER TABLE trial ADD COLUMN conditions TEXT NOT NULL DEFAULT 'null'; -- JSON: words by name
