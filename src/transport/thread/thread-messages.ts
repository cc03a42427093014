import type { AwsCredentials, S3Settings } from '../../aws/s3/s3-client.ts';
import type { Batch, Report } from '../../core/batch/batch.ts';
import type { BrowserSettings, CallbackSettings } from '../../ports/fetcher.ts';
import type { PackedReport } from '../packed-report.ts';

/** What the dispatcher and its threads say to each other. */
export type ToThread =
  /**
   * `clockOffsetMs`: what the wall clock here lacks to be the coordinator's, where that is on another machine.
   * `packed`: its reports go on to another machine.
   */
  | { kind: 'batch'; batch: Batch; clockOffsetMs?: number; packed: boolean }
  /** Returns what it has of one batch. */
  | { kind: 'recall'; batchId: number }
  /** Begins nothing more at these hosts for one batch. */
  | { kind: 'giveBack'; batchId: number; hosts: readonly string[] }
  /** A job of that priority begins. */
  | { kind: 'announce'; priority: number }
  | { kind: 'drain' }
  /** The answer to `credentials`. */
  | { kind: 'credentials'; credentials: AwsCredentials | { problem: string } }
  | { kind: 'close' };
export type FromThread =
  | { kind: 'ready' }
  /** Threads have no environment to look for them in. */
  | { kind: 'credentials' }
  | {
      kind: 'log';
      level: 'info' | 'warn' | 'error';
      message: string;
      fields?: Record<string, unknown> | undefined;
    }
  | { kind: 'part'; report: ThreadReport }
  | { kind: 'report'; report: ThreadReport };

/** Packed where the batch asked for that. */
export type ThreadReport = Report | PackedReport;

export interface ThreadData {
  name: string;
  /** See code-marks.ts. */
  marks?: SharedArrayBuffer;
  /** Where blobs are: a path or URL. */
  blobs: string;
  sync: boolean;
  s3?: Omit<S3Settings, 'credentials'>;
  /** `never` refuses private addresses, whatever a job says. */
  allowPrivate?: 'job' | 'never';
  browser?: BrowserSettings;
  apiCallbacks?: CallbackSettings;
}
