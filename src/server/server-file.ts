import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** In the folder of a server while it runs: how commands reach it. Readable by its user alone. */
export const SERVER_FILE = 'server.json';

export interface ServerFile {
  url: string;
  token: string;
  pid: number;
}

/** Null when there is none, or it cannot be read. */
export function readServerFile(dir: string): ServerFile | null {
  try {
    const { url, token, pid } = JSON.parse(readFileSync(join(dir, SERVER_FILE), 'utf8'));
    return typeof url === 'string' && typeof token === 'string' ? { url, token, pid } : null;
  } catch {
    return null;
  }
}
