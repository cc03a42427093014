import { z } from 'zod';

/** A stream of messages as a source: each becomes a record. */

export const websocket = z.strictObject({
  websocket: z
    .string()
    .regex(/^wss?:\/\/[^\s/?#@]+/i, 'a WebSocket must look like wss://stream.example/ticker')
    .describe(
      'Address of a WebSocket. Each message becomes a record. `{last}` is replaced with the last value of `cursor`.',
    ),
  limit: z.int().min(1).max(10_000_000).default(1_000).describe('Messages after which the source ends.'),
  idleSeconds: z
    .int()
    .min(1)
    .max(86_400)
    .default(60)
    .describe('The source ends when no message has come for this long.'),
  send: z
    .array(z.union([z.string().min(1), z.record(z.string(), z.unknown())]))
    .max(100)
    .default([])
    .describe(
      'Messages to send after each connect, such as a subscription. `{last}` is replaced as in the address.',
    ),
  cursor: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Path to the value in each message from which the server can go on after a reconnect: `data.id`.',
    ),
  key: z
    .string()
    .min(1)
    .optional()
    .describe(
      'Path to the value in each message that identifies its record. Default: one record per message.',
    ),
  priority: z.int().min(-1_000).max(1_000).default(0).describe('Higher runs first.'),
});

export type WebSocketSourceSpec = z.output<typeof websocket>;
