import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { OtlpSpan } from '../../../src/observe/traces/otlp-json.ts';
import { seineHere } from '../../support/seine-in-process.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { startLinkedSite } from '../../support/sites/linked-site.ts';

/** A run whose traces go to a collector; the judge of what it gets is the definition of the protocol itself. */

interface Message {
  fromObject(value: object): object;
  verify(value: object): string | null;
  encode(value: object): { finish(): Uint8Array };
  decode(bytes: Uint8Array): object;
  toObject(value: object, options: object): object;
}

const require = createRequire(import.meta.url);
const transformer = dirname(require.resolve('@opentelemetry/otlp-transformer'));
const root = require(join(transformer, 'generated/root.js'));
const REQUEST: Message = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

interface Request {
  resourceSpans: {
    resource: { attributes: object[] };
    scopeSpans: { scope: object; spans: OtlpSpan[] }[];
  }[];
}

let collector: Server;
let status = 200;
const received: { path: string; headers: IncomingHttpHeaders; body: Request }[] = [];

beforeEach(async () => {
  collector = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = JSON.parse(Buffer.concat(parts).toString());
    received.push({ path: request.url!, headers: request.headers, body });
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', `http://127.0.0.1:${port}`);
  vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-tenant=shop');
});
afterEach(() => {
  vi.unstubAllEnvs();
  collector.closeAllConnections();
  collector.close();
  received.length = 0;
  status = 200;
});

/** Ids are hex in JSON and bytes in the definition. */
function withBytes(request: Request): object {
  const bytes = (hex: string | undefined) => (hex === undefined ? {} : Buffer.from(hex, 'hex'));
  return {
    resourceSpans: request.resourceSpans.map((one) => ({
      ...one,
      scopeSpans: one.scopeSpans.map((scoped) => ({
        ...scoped,
        spans: scoped.spans.map(({ parentSpanId, ...span }) => ({
          ...span,
          traceId: bytes(span.traceId),
          spanId: bytes(span.spanId),
          ...(parentSpanId === undefined ? {} : { parentSpanId: bytes(parentSpanId) }),
        })),
      })),
    })),
  };
}

async function crawl(): Promise<Awaited<ReturnType<typeof seineHere>>> {
  const site = await startLinkedSite({ pages: 30 });
  const folder = temporaryFolder();
  try {
    const politeness = ['--rate', 'max', '--allow-private', '--workers', '1'];
    return await seineHere(
      'run',
      site.url,
      '--follow',
      ...politeness,
      '--dir',
      folder.path,
      '--name',
      'site',
    );
  } finally {
    await site.close();
    folder.remove();
  }
}

test('every batch of a run is a trace that the definition of the protocol accepts, whole', async () => {
  expect((await crawl()).code).toBe(0);
  expect(received.length).toBeGreaterThan(0);
  const spans: OtlpSpan[] = [];
  for (const { path, headers, body } of received) {
    expect([path, headers['x-tenant'], headers['content-type']]).toEqual([
      '/v1/traces',
      'shop',
      'application/json',
    ]);
    const given = withBytes(body);
    const message = REQUEST.fromObject(given);
    expect(REQUEST.verify(message)).toBeNull();
    // Fields that it does not know, or that have another type there, would not come back.
    const back = REQUEST.decode(REQUEST.encode(message).finish());
    expect(REQUEST.toObject(back, { longs: String, bytes: Buffer })).toEqual(given);
    spans.push(
      ...body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scoped) => scoped.spans)),
    );
  }
  const count = (name: string) => spans.filter((span) => span.name === name).length;
  const traces = new Set(spans.map(({ traceId }) => traceId));
  expect(count('batch')).toBe(traces.size);
  for (const name of ['plan', 'send seine-http', 'process seine-http', 'extract', 'archive'])
    expect([name, count(name)]).toEqual([name, traces.size]);
  expect(count('settle')).toBeGreaterThanOrEqual(traces.size);
  expect(count('GET')).toBe(30);
  const ids = new Set(spans.map(({ spanId }) => spanId));
  expect(ids.size).toBe(spans.length);
  expect(spans.every(({ parentSpanId, name }) => (name === 'batch') === (parentSpanId === undefined))).toBe(
    true,
  );
  expect(spans.every(({ parentSpanId }) => parentSpanId === undefined || ids.has(parentSpanId))).toBe(true);
});

test('a collector that refuses is a warning, and nothing for the run', async () => {
  status = 400;
  const { code, stderr } = await crawl();
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /cannot send traces to http:\/\/127\.0\.0\.1:\d+\/v1\/traces: it answers 400; \d+ spans/,
  );
});

test('without the variable nothing of it is loaded or sent', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', '');
  expect((await crawl()).code).toBe(0);
  expect(received).toEqual([]);
});
