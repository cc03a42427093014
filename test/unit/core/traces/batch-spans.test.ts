import { expect, test } from 'vitest';
import { tracesOf } from '../../../../src/config/traces.ts';
import { spansOf } from '../../../../src/core/traces/batch-spans.ts';
import { type BatchTrace, TRACED_PAGES_MAX } from '../../../../src/core/traces/batch-trace.ts';

const page = { attempt: 1, httpStatus: 200, bytes: 10, fetcher: 'http', error: null };
const TRACE: BatchTrace = {
  job: 'shop-1',
  batchId: 7,
  needs: 'http',
  tasks: 2,
  plannedAt: 1_000,
  sentAt: 1_010,
  endedAt: 2_000,
  worker: 'w/thread-1',
  // Its clock is a minute ahead.
  startedAt: 61_100,
  workedMs: 700,
  times: { network: 500, cpu: 120, archive: 30 },
  pages: [
    { ...page, url: 'https://a.example/1', startedAt: 61_150, durationMs: 100 },
    {
      ...page,
      url: 'http://b.example:8080/',
      startedAt: 61_200,
      durationMs: 9_000,
      httpStatus: null,
      attempt: 3,
      error: 'timeout',
    },
  ],
  settles: [{ from: 1_900, to: 2_000, outcomes: 2 }],
  lost: null,
};

test('each span lies within the one that it is part of, whatever the clock of the worker says', () => {
  const spans = spansOf(TRACE, 'bullmq');
  expect(spans.map(({ name, kind }) => [name, kind])).toEqual([
    ['batch', 'internal'],
    ['plan', 'internal'],
    ['send seine-http', 'producer'],
    ['process seine-http', 'consumer'],
    ['GET', 'client'],
    ['GET', 'client'],
    ['extract', 'internal'],
    ['archive', 'internal'],
    ['settle', 'internal'],
  ]);
  for (const { parent, from, to } of spans) {
    expect(to).toBeGreaterThanOrEqual(from);
    if (parent === null) continue;
    expect(from).toBeGreaterThanOrEqual(spans[parent]!.from);
    expect(to).toBeLessThanOrEqual(spans[parent]!.to);
  }
  expect(spans[5]).toMatchObject({ error: 'timeout', parent: 3 });
  expect(Object.fromEntries(spans[5]!.attributes)).toMatchObject({
    'server.port': 8080,
    'http.request.resend_count': 2,
    'error.type': 'timeout',
  });
  expect(spans[6]!.to - spans[6]!.from).toBe(120);
});

test('a batch that was lost has no work, and one of many pages has a bounded number of spans', () => {
  const lost = spansOf({ ...TRACE, startedAt: null, pages: [], settles: [], lost: 'gone' }, 'bullmq');
  expect(lost.map(({ name, error }) => [name, error])).toEqual([
    ['batch', 'worker-lost'],
    ['plan', null],
    ['send seine-http', null],
  ]);
  const many = Array.from({ length: 1_000 }, () => TRACE.pages[0]!);
  expect(spansOf({ ...TRACE, pages: many }, 'bullmq')).toHaveLength(7 + TRACED_PAGES_MAX);
});

test('the variables of OpenTelemetry say where traces go', () => {
  expect(tracesOf({})).toBeNull();
  expect(tracesOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/', OTEL_SDK_DISABLED: 'true' })).toBeNull();
  expect(
    tracesOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318/',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20x,other=1',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.1',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=prod,service.name=ignored',
      OTEL_SERVICE_NAME: 'crawler',
    }),
  ).toEqual({
    url: 'http://c:4318/v1/traces',
    headers: { authorization: 'Bearer x', other: '1' },
    share: 0.1,
    attributes: [
      ['deployment.environment', 'prod'],
      ['service.name', 'crawler'],
    ],
    timeoutMs: 10_000,
  });
  const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://c/own' };
  expect(tracesOf(own)).toMatchObject({ url: 'https://c/own', share: 1 });
  expect(() => tracesOf({ ...own, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toThrow('not over grpc');
  expect(() => tracesOf({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' })).toThrow(
    'not an http or https URL',
  );
});
