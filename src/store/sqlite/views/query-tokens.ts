/** Words of a query as SQLite reads them: names and texts, in every way of quoting, without comments. */
const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'((?:[^']|'')*)'|"((?:[^"]|"")*)"|`((?:[^`]|``)*)`|\[([^\]]*)\]|([\p{L}_\u0080-\uffff][\p{L}\p{N}_$\u0080-\uffff]*)/gu;

/** SQLite takes a quoted text for a name where only a name makes sense, so both are given alike. */
export function readTokens(sql: string): string[] {
  return [...sql.matchAll(TOKEN)].flatMap(([, text, double, back, bracket, word]) => {
    if (text !== undefined) return text.replaceAll("''", "'");
    if (double !== undefined) return double.replaceAll('""', '"');
    if (back !== undefined) return back.replaceAll('``', '`');
    return bracket ?? word ?? [];
  });
}

/** The same without what stands in quotes or comments: whether it is one SELECT. */
export function isOneSelect(sql: string): boolean {
  const bare = sql.replace(TOKEN, (part, ...groups) =>
    groups[4] !== undefined ? part : /^(--|\/\*)/.test(part) ? ' ' : 'x',
  );
  const statement = bare.replace(/;\s*$/, '').trim();
  return /^(select|with)\b/i.test(statement) && !statement.includes(';');
}
