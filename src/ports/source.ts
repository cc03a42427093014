import type { Meta } from '../core/model.ts';

/** One row of a source. `place` is for people, `position` is where to continue after this row. */
export interface SourceRow {
  place: string;
  position: string;
  /** What was read, or why it could not be. */
  row: { url: string; meta: Meta | null } | { reason: string };
}

/** URLs from outside, read lazily and from any position that it has given before. */
export interface Source {
  readonly name: string;
  readonly priority: number;
  rows(from: string | null): AsyncIterable<SourceRow>;
}
