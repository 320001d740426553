-- The column for caveats of a run has the name of the JSON key. The store also upgrades the runs by result.Run.Upgrade.

ALTER TABLE run RENAME COLUMN limits TO caveats;
