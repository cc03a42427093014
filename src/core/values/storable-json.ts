/** How JSON writes the character 0 and halves of characters, which no text of PostgreSQL can have. */
const UNSTORABLE = /\\u(?:0000|d[89a-f])/;
/** An even number of backslashes before it are backslashes themselves. */
const EACH_UNSTORABLE = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g;

/**
 * JSON that every database can look into: the character 0 and halves of characters become U+FFFD, as browsers show them.
 * One of them in one record would otherwise end every query that reads that field.
 */
export function storableJson(json: string): string {
  return UNSTORABLE.test(json) ? json.replace(EACH_UNSTORABLE, '$1\ufffd') : json;
}
