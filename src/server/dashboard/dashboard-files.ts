import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Problem } from '../api/requests/problems.ts';

/** The files of the page, as the build leaves them: in memory, since they are few and small. */

const TYPES = {
  'index.html': 'text/html; charset=utf-8',
  'app.js': 'text/javascript; charset=utf-8',
  'app.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

type FileName = keyof typeof TYPES;

/** Addresses of the page itself: it reads what follows. */
const PAGES = [
  '/',
  '/jobs',
  '/jobs/*',
  '/new',
  '/hosts',
  '/workers',
  '/cost',
  '/webhooks',
  '/alerts',
  '/settings',
];

/** Nothing runs that is not a file of this server. Stored pages are shown in frames that have a stricter one. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Beside the built program; and from a clone that runs its sources, where the last build left them. */
const PLACES = ['../../dashboard/', '../../../dist/dashboard/'];

interface PageFile {
  type: string;
  etag: string;
  plain: Buffer;
  packed: Buffer;
}

function readPageFile(name: FileName): PageFile | null {
  for (const place of PLACES)
    try {
      const plain = readFileSync(new URL(place + name, import.meta.url));
      const etag = `"${hash('sha256', plain, 'base64url').slice(0, 22)}"`;
      return { type: TYPES[name], etag, plain, packed: gzipSync(plain) };
    } catch {
      // The other place may have it.
    }
  return null;
}

export function addDashboardFiles(
  app: FastifyInstance,
  isShown: (request: FastifyRequest) => Promise<boolean>,
): void {
  const files = new Map<FileName, PageFile | null>();
  const send = (name: FileName) => async (request: FastifyRequest, reply: FastifyReply) => {
    if (!(await isShown(request))) throw new Problem('not-found');
    if (!files.has(name)) files.set(name, readPageFile(name));
    const file = files.get(name);
    if (!file) throw new Problem('not-found', 'the dashboard was not built: run `npm run build`');
    reply.headers({
      'content-type': file.type,
      'content-security-policy': PAGE_POLICY,
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
      vary: 'accept-encoding',
      etag: file.etag,
    });
    if (request.headers['if-none-match'] === file.etag) return reply.code(304).send();
    const takesGzip = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''));
    return takesGzip ? reply.header('content-encoding', 'gzip').send(file.packed) : reply.send(file.plain);
  };
  for (const path of PAGES) app.get(path, send('index.html'));
  for (const name of ['app.js', 'app.css', 'icon.svg'] as const) app.get(`/assets/${name}`, send(name));
}
