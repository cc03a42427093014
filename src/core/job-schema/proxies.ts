import { z } from 'zod';
import { parseProxy } from '../proxies/proxy.ts';
import { POOL_TYPES } from '../proxies/shared-pools.ts';

/**
 * Proxies of a job. A job is stored, sent to workers and shown to users, so it contains only references to secrets.
 * They are read when a run starts and when it is resumed.
 */

/** Someone took the proxy itself for the name of the list: it must not be stored as one. */
function isProxyWithCredentials(path: string): boolean {
  const proxy = parseProxy(path.slice(path.lastIndexOf('/') + 1)) ?? parseProxy(path);
  return proxy !== null && proxy.username + proxy.password !== '';
}

export const secretRef = z.union([
  z.strictObject({
    env: z
      .string()
      .regex(/^[A-Za-z_]\w*$/, 'must be the name of an environment variable')
      .describe('Name of an environment variable.'),
  }),
  z.strictObject({
    file: z
      .string()
      .min(1)
      .refine((text) => !isProxyWithCredentials(text), 'is a proxy, not the name of a file')
      .describe('Path of a file. In job files it is relative to the job file.'),
  }),
  z.strictObject({
    secret: z
      .string()
      .regex(/^\w[\w.-]*$/, 'must be a name in the folder of secrets')
      .describe('Name of a file in the folder of mounted secrets; see the setting `secrets`.'),
  }),
]);

export type SecretRef = z.output<typeof secretRef>;

/**
 * What becomes of a secret. `anywhere`: the job says where it is sent. `own-place`: it says that itself, as the lines of
 * a list of proxies and the cookies of a login state do, and anything else is refused as one.
 */
export type SecretUse = 'anywhere' | 'own-place';

const PLAIN_PROXY = /^(?:\w{1,10}:\/\/)?(?:\[[0-9a-f:.]{2,64}\]|[^\s:/@[\]]{1,253}):\d{1,5}\/?$/i;

/** Only what is known to be none passes, also in the form `host:port:user:password`: a job is stored and shown. */
function hasNoCredentials(text: string): boolean {
  return text
    .replace(/(^|\s)#.*$/gm, '')
    .split(/[\s,;]+/)
    .every((word) => word === '' || /^[a-z]{2}$/i.test(word) || PLAIN_PROXY.test(word));
}

const inlineList = z.strictObject({
  list: z
    .array(
      z
        .string()
        .min(1)
        .refine(hasNoCredentials, 'a job must not contain credentials: use `credentials`, `file` or `env`'),
    )
    .min(1)
    .describe('Proxies without credentials: `http://192.0.2.1:8080`.'),
  credentials: secretRef.optional().describe('Where to read the `user:password` for all of them.'),
});

const poolName = z
  .string()
  .regex(/^[\w.-]{1,64}$/, 'a name may contain only letters, digits, dots, dashes and underscores');

const sharedList = z.strictObject({
  shared: poolName.describe('Name of a list that the operator shares; see the setting `proxyPools`.'),
});

/** Where the list of a pool is read. */
export type ProxyListRef = SecretRef | z.output<typeof sharedList>;

const pool = z.strictObject({
  type: z
    .enum(POOL_TYPES)
    .default('datacenter')
    .describe('Type of the proxies. It sets the default of `rotate`.'),
  country: z
    .string()
    .regex(/^[A-Za-z]{2}$/, 'must be two letters, such as DE')
    .optional()
    .describe(
      'Use only proxies that the list marks with this country or with none. Also replaces `{country}` in user names.',
    ),
  from: z
    .union([secretRef, inlineList, sharedList])
    .describe(
      'List of proxies, one per line: `scheme://user:password@host:port`. The scheme is http, https, socks5 or socks5h.',
    ),
  rotate: z
    .union([z.enum(['request', 'never']), z.int().min(1).max(86_400)])
    .optional()
    .describe(
      '`request` chooses a proxy for each request; a number keeps one proxy per host for that many seconds; `never` keeps it. Default: `request` for datacenter and isp, 600 for residential and mobile.',
    ),
  sticky: z
    .boolean()
    .default(false)
    .describe('Each host and identity keeps its proxy as long as the proxy works.'),
  perWorker: z
    .boolean()
    .default(false)
    .describe('Each worker keeps its own proxy as long as the proxy works.'),
  ratePerProxy: z
    .number()
    .positive()
    .max(100_000)
    .optional()
    .describe('Average requests per second through one proxy. The limits per host still apply.'),
  cooldownSeconds: z
    .number()
    .positive()
    .max(3_600)
    .default(30)
    .describe(
      'First pause of a proxy that failed or that a host blocked. It doubles each time, up to an hour.',
    ),
});

export const proxies = z
  .strictObject({
    pools: z.record(poolName, pool).describe('Pools by name.'),
    default: poolName
      .optional()
      .describe('Pool for every request; routes can choose another. Default: no proxy.'),
    fallback: z
      .enum(['wait', 'direct'])
      .default('wait')
      .describe('If no proxy of a pool is usable: wait for one, or connect directly.'),
  })
  .refine(({ pools, default: name }) => name === undefined || Object.hasOwn(pools, name), {
    path: ['default'],
    message: 'unknown pool',
  })
  .optional()
  .describe('Proxies; see docs/proxies.md.');

export type PoolSpec = z.output<typeof pool>;
