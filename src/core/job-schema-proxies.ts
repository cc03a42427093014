import { z } from 'zod';

/**
 * Proxies of a job. A job is stored, sent to workers and shown to people, so it only says where secrets are: they are
 * read when a run starts, and again when it is resumed.
 */

export const secretRef = z.union([
  z.strictObject({
    env: z
      .string()
      .regex(/^[A-Za-z_]\w*$/, 'a name of an environment variable')
      .describe('Name of an environment variable.'),
  }),
  z.strictObject({ file: z.string().min(1).describe('A path; in job files, from where the file is.') }),
  z.strictObject({
    secret: z
      .string()
      .regex(/^\w[\w.-]*$/, 'a name in the folder of secrets')
      .describe('Name of a file in the folder of mounted secrets: see the setting `secrets`.'),
  }),
]);

export type SecretRef = z.output<typeof secretRef>;

const inlineList = z.strictObject({
  list: z
    .array(
      z
        .string()
        .min(1)
        .refine((text) => !text.includes('@'), 'no credentials in a job: use `credentials`, `file` or `env`'),
    )
    .min(1)
    .describe('Proxies without credentials: `http://192.0.2.1:8080`.'),
  credentials: secretRef.optional().describe('Where `user:password` for all of them is.'),
});

const POOL_TYPES = ['datacenter', 'isp', 'residential', 'mobile'] as const;

const pool = z.strictObject({
  type: z
    .enum(POOL_TYPES)
    .default('datacenter')
    .describe('Decides how fast proxies are changed when `rotate` does not.'),
  country: z
    .string()
    .regex(/^[A-Za-z]{2}$/, 'two letters, like DE')
    .optional()
    .describe('Only proxies that the list gives this country, or none; replaces `{country}` in user names.'),
  from: z
    .union([secretRef, inlineList])
    .describe(
      'A list of proxies, one a line: `scheme://user:password@host:port`, with http, https, socks5 or socks5h.',
    ),
  rotate: z
    .union([z.enum(['request', 'never']), z.int().min(1).max(86_400)])
    .optional()
    .describe(
      '`request`: each request chooses anew; a number: a host stays with a proxy for so many seconds. By type: datacenter and isp `request`, residential and mobile 600.',
    ),
  sticky: z
    .boolean()
    .default(false)
    .describe('Each host and identity keeps its proxy for as long as that works.'),
  perWorker: z
    .boolean()
    .default(false)
    .describe('Each worker keeps a proxy of its own for as long as that works.'),
  ratePerProxy: z
    .number()
    .positive()
    .max(100_000)
    .optional()
    .describe('Requests per second through one proxy, on average; hosts keep their own limits besides.'),
  cooldownSeconds: z
    .number()
    .positive()
    .max(3_600)
    .default(30)
    .describe('First rest of a proxy that failed or is refused by a host; doubled each time, up to an hour.'),
});

const poolName = z
  .string()
  .regex(/^[\w.-]{1,64}$/, 'a name has letters, digits, dots, dashes and underscores');

export const proxies = z
  .strictObject({
    pools: z.record(poolName, pool).describe('Pools by name.'),
    default: poolName.optional().describe('Pool of every request; of none when absent. Routes may differ.'),
    fallback: z
      .enum(['wait', 'direct'])
      .default('wait')
      .describe('When no proxy of a pool can be used: wait for one, or ask from the own address.'),
  })
  .refine(({ pools, default: name }) => name === undefined || Object.hasOwn(pools, name), {
    path: ['default'],
    message: 'there is no such pool',
  })
  .optional()
  .describe('Proxies; see docs/proxies.md.');

export type PoolSpec = z.output<typeof pool>;
