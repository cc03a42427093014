import type { MessagePort } from 'node:worker_threads';
import type { RemoteStore } from '../../app/folder.ts';
import type { S3Settings } from '../../aws/s3/s3-client.ts';
import type { SharedPool } from '../../core/proxies/shared-pools.ts';
import type { ListenAddress } from '../../network/listen-address.ts';
import type { ServerPlace } from '../server-place.ts';
import type { CopiedError } from './calls.ts';

/** What the thread is started with. */
export interface HttpThreadData {
  listen: ListenAddress;
  /** Of commands on this machine that can read the folder. */
  token: string;
  allowPrivate: boolean;
  proxyPools: ReadonlyMap<string, SharedPool>;
  place: ServerPlace;
  dir: string;
  store: RemoteStore | null;
  blobs: string;
  s3: S3Settings | null;
  /** Answers calls of `Work`. */
  work: MessagePort;
}

/** What the thread tells. */
export type HttpThreadMessage =
  | { kind: 'listening'; url: string }
  | { kind: 'failed'; error: CopiedError }
  | { kind: 'log'; level: 'info' | 'warn' | 'error'; message: string; fields?: Record<string, unknown> };
