/** The dedupe index is written behind: tasks after the mark are not in it yet. */
export const SEEN_MIGRATION = `
  -- indexed_to: tasks up to this id are in seen. filtered: whether all of those are in seen_filter, too;
  -- an index that was there before has no filter.
  CREATE TABLE seen_state (indexed_to INTEGER NOT NULL, filtered INTEGER NOT NULL);
  INSERT INTO seen_state SELECT coalesce(max(id), 0), max(id) IS NULL FROM tasks;
  CREATE TABLE seen_filter (capacity INTEGER PRIMARY KEY, count INTEGER NOT NULL, bits BLOB NOT NULL);
`;
