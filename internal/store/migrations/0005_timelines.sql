-- Quantities over the time of a trial.

CREATE TABLE timeline (
    trial  INTEGER NOT NULL REFERENCES trial (key) ON DELETE CASCADE,
    ord    INTEGER NOT NULL, -- place among the timelines of the trial, from 0
    line   TEXT    NOT NULL, -- JSON
    PRIMARY KEY (trial, ord)
) STRICT, WITHOUT ROWID;
