import { appendFile, mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../../core/file-modes.ts';
import type { Reject, RejectFile } from '../../ports/source.ts';

/** Rejected rows that are written down, some 200,000; the counter has them all. */
export const REJECT_FILE_BYTES_MAX = 32 * 1024 * 1024;

/** Rejected rows as JSON lines. What a killed run was about to read may be in it twice. */
export function openRejectFile(path: string, pass: number): RejectFile {
  let bytes: number | null = null;
  return {
    async append(rejects: readonly Reject[]) {
      if (bytes === null) {
        await mkdir(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
        bytes = await stat(path).then(
          ({ size }) => size,
          () => 0,
        );
      }
      let text = '';
      for (const reject of rejects) {
        if (bytes >= REJECT_FILE_BYTES_MAX) break;
        const line = `${JSON.stringify({ pass, ...reject })}\n`;
        text += line;
        bytes += Buffer.byteLength(line);
      }
      if (text !== '') await appendFile(path, text, { mode: PRIVATE_FILE });
    },
  };
}
