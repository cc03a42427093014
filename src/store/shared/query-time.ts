import { SeineError } from '../../core/errors.ts';

/** How long a query of a person may take until its first row. */
export const QUERY_MS = 600_000;

export function tooSlow(ms: number): SeineError {
  return new SeineError(`the query failed: it took longer than ${Math.round(ms / 1_000)} s`, {
    hint: 'ask for less, for example with a WHERE on job or state',
  });
}
