import { z } from 'zod';
import { secretRef } from './proxies.ts';

/** Who is told when a run has ended. */

const notifier = z
  .strictObject({
    url: z
      .union([z.string().regex(/^https?:\/\/\S+$/, 'must be an http(s) URL'), secretRef])
      .optional()
      .describe(
        'URL that the summary is posted to as JSON, or a secret that holds it. `text` is what chat services show.',
      ),
    command: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe(
        'Program and arguments. It gets the summary as JSON on standard input. Only in job files; where `SEINE_JOB_COMMANDS` is set, YAML and JSON run only what it lists.',
      ),
    when: z
      .enum(['always', 'change', 'failure'])
      .default('always')
      .describe(
        '`change`: only when records changed or something failed. `failure`: only with dead letters, dropped fields, gone records, or a circuit breaker that stopped the run.',
      ),
  })
  .refine(
    ({ url, command }) => (url === undefined) !== (command === undefined),
    'needs either url or command',
  );

export const notify = z
  .union([notifier, z.array(notifier)])
  .transform((value) => (Array.isArray(value) ? value : [value]))
  .optional()
  .describe('Who is told when a run has ended.');

export type Notifier = z.output<typeof notifier>;
