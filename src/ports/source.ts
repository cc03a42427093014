import type { Meta } from '../core/model.ts';
import type { RowProxy } from '../core/proxies/row-proxy.ts';

/** One row of a source. `place` is for people, `position` is where to continue after this row. */
export interface SourceRow {
  place: string;
  position: string;
  /** What was read, or why it could not be. */
  row: SourceTask | { reason: string };
}

export interface SourceTask {
  url: string;
  meta: Meta | null;
  /** Instead of the route that the URL would get. */
  route?: string;
  /** Instead of that of the source. */
  priority?: number;
  /** Instead of those of its route. */
  proxy?: RowProxy;
  /** Epoch milliseconds, when the source says so. */
  modifiedAt?: number;
}

/** A row that could not be used. */
export interface Reject {
  /** The list, and where in it. */
  source: string;
  place: string;
  reason: string;
}

/** Where rejected rows are written down; it holds as many as it has room for. */
export interface RejectFile {
  append(rejects: readonly Reject[]): Promise<void>;
}

/** URLs from outside, read lazily and from any position that it has given before. */
export interface Source {
  readonly name: string;
  readonly priority: number;
  /** Rows come when something happens, and are stored at once: the next may be long in coming. */
  readonly isLive?: boolean;
  /** The signal ends what may take long before its next row: it fails with the signal's reason. */
  rows(from: string | null, options?: { signal?: AbortSignal }): AsyncIterable<SourceRow>;
  /** How much of it is read at a position, by bytes, 0 to 1; null or absent where that is not known. */
  shareRead?(position: string): Promise<number | null>;
}
