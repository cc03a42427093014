import { z } from 'zod';

/** Request rates and other rules of politeness. */

const clockTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time must look like 22:30');

const hostRule = z.strictObject({
  rate: z
    .union([z.number().positive().max(100_000), z.literal('max')])
    .optional()
    .describe('Requests per second.'),
  parallel: z.int().min(1).max(1_000).optional().describe('Concurrent requests.'),
  window: z
    .strictObject({
      from: clockTime.describe('Start, such as 22:00.'),
      to: clockTime.describe('End, such as 06:00. If it is before `from`, it is on the next day.'),
      timeZone: z.string().min(1).default('UTC').describe('Such as Europe/Paris.'),
    })
    .optional()
    .describe('Hours in which requests to the host are allowed.'),
});

export type HostRule = z.output<typeof hostRule>;

export const politeness = z
  .strictObject({
    rate: z
      .union([z.number().positive().max(100_000), z.literal('max')])
      .default(4)
      .describe('Requests per second and host, or `max` for no limit.'),
    parallel: z
      .int()
      .min(1)
      .max(1_000)
      .nullable()
      .default(null)
      .describe('Concurrent requests per host. Default: 4, or 32 with rate `max`.'),
    adaptive: z
      .boolean()
      .default(true)
      .describe('Start at half the rate, and slow down if a host refuses requests, fails or becomes slow.'),
    jitter: z
      .number()
      .min(0)
      .max(3)
      .default(0)
      .describe(
        'Lengthen each pause between requests by a random share up to this value; sometimes by much more.',
      ),
    groupBy: z
      .enum(['host', 'site', 'address'])
      .default('host')
      .describe(
        'Apply rates per host, per registrable domain (`site`), or per IP address. An address is resolved once, when the host is first seen.',
      ),
    hosts: z
      .record(z.string().min(1), hostRule)
      .default({})
      .describe('Limits for single hosts; `*.example.com` matches all subdomains. The first match applies.'),
    robots: z.boolean().default(true).describe('Obey robots.txt, including Crawl-delay and Request-rate.'),
    robotsTags: z
      .enum(['record', 'obey'])
      .default('record')
      .describe(
        'What to do with X-Robots-Tag and meta robots. `record` only records them. `obey` also follows no links of nofollow pages, stores no records or copies of noindex and noai pages, no copies of noarchive pages, and no media of noai, noimageai and noimageindex pages.',
      ),
  })
  .prefault({});
