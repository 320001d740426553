-- Runs that are stored under a name, to compare later runs with them. A baseline is a copy, and does not depend on the table of runs.

CREATE TABLE baseline (
    name     TEXT PRIMARY KEY,
    saved    TEXT NOT NULL,
    runs     TEXT NOT NULL, -- JSON: the runs in a few words
    document BLOB NOT NULL  -- gzip of the JSON of `touchstone export`
) STRICT;
