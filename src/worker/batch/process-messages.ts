import { hash } from 'node:crypto';
import type { BatchTask } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { messageOf } from '../../core/errors.ts';
import { MESSAGES_ROUTE } from '../../core/job-schema/job.ts';
import { unpackMessages } from '../../core/messages/messages.ts';
import type { Clock } from '../../ports/ambient.ts';
import { toDrafts } from '../records/record-steps.ts';
import { failed } from '../request/visit.ts';

/** Records of messages that came with the task. No request is sent. */
export function processMessages(task: BatchTask, clock: Clock): Outcome {
  const messages = unpackMessages(task.meta);
  const text = messages.map(([, json]) => json).join('\n');
  const trace = { startedAt: clock.now(), durationMs: 0, httpStatus: null, bytes: 0 };
  try {
    const records = messages.map(([key, json], index) => ({
      key: key ?? `${task.url}#${index + 1}`,
      data: JSON.parse(json),
    }));
    // Two messages with one key are two states of it: the later one holds.
    const latest = [...new Map(records.map((record) => [record.key, record])).values()];
    return {
      ...{ kind: 'fetched', taskId: task.id, links: [], shows: [], trace },
      records: toDrafts(latest, false),
      page: {
        ...{ route: MESSAGES_ROUTE, httpStatus: 200, contentType: 'application/json' },
        ...{ bytes: text.length, sha256: hash('sha256', text, 'hex'), archive: null, media: null },
        ...{ robotsTags: null, etag: null, lastModified: null },
      },
    };
  } catch (error) {
    return failed(task.id, 'parse-error', messageOf(error), trace);
  }
}
