/** What counts as no value: for required fields, for fill rates, and for pages that give no record. */
export function isBlank(value: unknown): boolean {
  return (
    value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
  );
}
