import { z } from 'zod';

/** How gently hosts are asked. */

const clockTime = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'a time is written like 22:30');

const hostRule = z.strictObject({
  rate: z
    .union([z.number().positive().max(100_000), z.literal('max')])
    .optional()
    .describe('Requests per second.'),
  parallel: z.int().min(1).max(1_000).optional().describe('Requests at once.'),
  window: z
    .strictObject({
      from: clockTime.describe('Like 22:00.'),
      to: clockTime.describe('Like 06:00, on the next day if it is earlier.'),
      timeZone: z.string().min(1).default('UTC').describe('Like Europe/Paris.'),
    })
    .optional()
    .describe('Hours in which the host may be asked.'),
});

export type HostRule = z.output<typeof hostRule>;

export const politeness = z
  .strictObject({
    rate: z
      .union([z.number().positive().max(100_000), z.literal('max')])
      .default(4)
      .describe('Requests per second and host, or `max`.'),
    parallel: z
      .int()
      .min(1)
      .max(1_000)
      .nullable()
      .default(null)
      .describe('Requests at once per host; 4, or 32 with rate `max`.'),
    adaptive: z
      .boolean()
      .default(true)
      .describe('Start at half the rate, and slow down where a host refuses, fails or strains.'),
    jitter: z
      .number()
      .min(0)
      .max(3)
      .default(0)
      .describe('Lengthens each gap by a random share of it up to this; now and then much longer.'),
    groupBy: z
      .enum(['host', 'site', 'address'])
      .default('host')
      .describe(
        'Whether rates are counted by host, by registrable domain, or by the address that names lead to when they are first met.',
      ),
    hosts: z
      .record(z.string().min(1), hostRule)
      .default({})
      .describe(
        'Other limits for named hosts; `*.example.com` stands for all below. The first that fits decides.',
      ),
    robots: z.boolean().default(true).describe('Obey robots.txt, its Crawl-delay and Request-rate too.'),
    robotsTags: z
      .enum(['record', 'obey'])
      .default('record')
      .describe(
        'X-Robots-Tag and meta robots are always recorded; `obey`: no links of nofollow pages, no records and no copy of noindex and noai ones, no copy of noarchive ones, no media of noai, noimageai and noimageindex ones.',
      ),
  })
  .prefault({});
