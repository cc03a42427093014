/** RFC 4180, with objects and lists as JSON. */
export function csvHeader(columns: readonly string[]): string {
  return `${columns.map(cell).join(',')}\r\n`;
}

export function csvLine(columns: readonly string[], row: object): string {
  return `${columns.map((name) => cell((row as Record<string, unknown>)[name])).join(',')}\r\n`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
