package record

// Format spells a record, for tests.
var Format = format
