-- Runs with their trials, phases, samples and distributions, and baselines.
--
-- Times are RFC 3339 in UTC with nine digits of a second, so that they sort as
-- text; durations are nanoseconds. Columns in which a document stands hold the
-- JSON of `touchstone export`. What is asked for over many trials has a column.
--
-- The digests in schema.txt are of this text, with its comments and spaces.
-- Further columns: images (JSON) are those that programs of the run come from,
-- imported (0 or 1) marks a run that must not be resumed, stopping (JSON) is the
-- rule of a run that stops single cells. conditions (JSON) are those of a trial,
-- failed_calls (JSON) counts the failed calls of the engine by name. A trace is a
-- trial under a tracer, whose times are no results. A baseline
-- is a copy of runs, which does not depend on the table of runs.

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
    caveats     TEXT    NOT NULL  -- JSON
, images TEXT NOT NULL DEFAULT 'null', imported INTEGER NOT NULL DEFAULT 0, stopping TEXT NOT NULL DEFAULT 'null') STRICT;

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
    self_cpu_ns INTEGER NOT NULL, conditions TEXT NOT NULL DEFAULT 'null', failed_calls TEXT NOT NULL DEFAULT 'null',
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

CREATE TABLE timeline (
    trial  INTEGER NOT NULL REFERENCES trial (key) ON DELETE CASCADE,
    ord    INTEGER NOT NULL, -- place among the timelines of the trial, from 0
    line   TEXT    NOT NULL, -- JSON
    PRIMARY KEY (trial, ord)
) STRICT, WITHOUT ROWID;

CREATE TABLE trace (
    run   INTEGER NOT NULL REFERENCES run (key) ON DELETE CASCADE,
    seq   INTEGER NOT NULL,
    trace TEXT    NOT NULL, -- JSON
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE baseline (
    name     TEXT PRIMARY KEY,
    saved    TEXT NOT NULL,
    runs     TEXT NOT NULL, -- JSON: the runs in a few words
    document BLOB NOT NULL  -- gzip of the JSON of `touchstone export`
) STRICT;
