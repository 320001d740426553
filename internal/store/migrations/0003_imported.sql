-- Which runs came from elsewhere: their plans are not to be executed by going on with them.

ALTER TABLE run ADD COLUMN imported INTEGER NOT NULL DEFAULT 0; -- 0 or 1
