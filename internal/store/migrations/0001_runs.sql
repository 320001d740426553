-- Runs with their trials, phases, samples and distributions.
--
-- Times are RFC 3339 in UTC with nine digits of a second, so that they sort as
-- text; durations are nanoseconds. Columns in which a document stands hold the
-- JSON of `touchstone export`. What is asked for over many trials has a column.

PRAGMA application_id = 0x5453544E; -- "TSTN"

CREATE TABLE run (
    key        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    started    TEXT,
    ended      TEXT,             -- NULL until the run has ended
    tool       TEXT    NOT NULL, -- JSON
    seed       TEXT    NOT NULL, -- decimal: an unsigned integer of 64 bits does not fit INTEGER
    baseline   TEXT    NOT NULL,
    plan       TEXT    NOT NULL, -- YAML
    host       TEXT    NOT NULL, -- JSON
    targets    TEXT    NOT NULL, -- JSON
    benchmarks TEXT    NOT NULL, -- JSON: what the metrics of the samples mean
    overhead   TEXT    NOT NULL, -- JSON
    limits     TEXT    NOT NULL  -- JSON
) STRICT;

CREATE TABLE trial (
    key         INTEGER PRIMARY KEY,
    run         INTEGER NOT NULL REFERENCES run (key) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    benchmark   TEXT    NOT NULL,
    params      TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    block       INTEGER NOT NULL,
    warmup      INTEGER NOT NULL, -- 0 or 1
    status      TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    output      TEXT    NOT NULL,
    started     TEXT,
    elapsed_ns  INTEGER NOT NULL,
    host        TEXT    NOT NULL, -- JSON: what the machine did meanwhile
    self_cpu_ns INTEGER NOT NULL,
    UNIQUE (run, seq)
) STRICT;

CREATE TABLE phase (
    trial       INTEGER NOT NULL REFERENCES trial (key) ON DELETE CASCADE,
    ord         INTEGER NOT NULL, -- place among the phases of the trial, from 0
    name        TEXT    NOT NULL,
    start_ns    INTEGER NOT NULL,
    duration_ns INTEGER NOT NULL,
    PRIMARY KEY (trial, ord)
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (
    trial  INTEGER NOT NULL REFERENCES trial (key) ON DELETE CASCADE,
    ord    INTEGER NOT NULL, -- place among the samples of the trial, from 0
    metric TEXT    NOT NULL,
    value  REAL    NOT NULL, -- in the unit that run.benchmarks gives
    PRIMARY KEY (trial, ord)
) STRICT, WITHOUT ROWID;

CREATE TABLE distribution (
    trial     INTEGER NOT NULL REFERENCES trial (key) ON DELETE CASCADE,
    ord       INTEGER NOT NULL, -- place among the distributions of the trial, from 0
    metric    TEXT    NOT NULL,
    histogram TEXT    NOT NULL, -- JSON
    PRIMARY KEY (trial, ord)
) STRICT, WITHOUT ROWID;
