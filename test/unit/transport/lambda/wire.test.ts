import { describe, expect, test } from 'vitest';
import { policyOf, type Wanted } from '../../../../src/cli/lambda/deploy-plan.ts';
import { type Batch, type Report, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { splitReport } from '../../../../src/core/batch/report.ts';
import { billOf, PRICES_DEFAULT, totalOf } from '../../../../src/core/cost/cost.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import { metricsLine } from '../../../../src/transport/lambda/cloudwatch-metrics.ts';
import { ConcurrencyLimit } from '../../../../src/transport/lambda/concurrency-limit.ts';
import { InvocationClock } from '../../../../src/transport/lambda/invocation-clock.ts';
import { billedMsOf, CostMeter, usageOfCall } from '../../../../src/transport/lambda/lambda-cost.ts';
import { decodeBatch, decodeParts, encodeBatch, encodeParts } from '../../../../src/transport/lambda/wire.ts';
import { openMessageSeal } from '../../../../src/transport/message-seal.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';
import { pageOf, recordOf, specOf, T0, traceOf } from '../../../support/fixtures.ts';

function fetched(taskId: number, links: number): Outcome {
  const link = { url: 'https://a.example/', host: 'a.example', priority: 0, route: null };
  return {
    kind: 'fetched',
    taskId,
    page: pageOf({ archive: { offset: 0, length: 9 } }),
    links: Array(links).fill(link),
    records: [recordOf('k', { a: 1 })],
    shows: [],
    trace: traceOf(),
  };
}

function reportOf(outcomes: Outcome[], change: Partial<Report> = {}): Report {
  return {
    version: WIRE_VERSION,
    batchId: 5,
    part: 0,
    final: true,
    worker: 'w',
    startedAt: T0,
    durationMs: 9,
    permits: [{ host: 'a.example', sent: 7, lastSentAt: T0, finished: true }],
    robots: [{ kind: 'deferred', origin: 'https://a.example' }],
    outcomes,
    quality: [{ route: 'r', records: 1, invalid: 0, filled: {} }],
    cookies: [],
    archive: { key: 'warc/1', bytes: 9 },
    pack: { key: 'shards/1', bytes: 9 },
    trouble: 'something',
    ...change,
  };
}

describe('a report in parts', () => {
  test('is itself when it is small', () => {
    const report = reportOf([fetched(1, 3), fetched(2, 3)]);
    expect(splitReport(report, 100)).toEqual([report]);
    const empty = reportOf([]);
    expect(splitReport(empty, 100)).toEqual([empty]);
  });

  test('each task is in one part, none has too much, and the whole is told once', () => {
    const deferred: Outcome = { kind: 'deferred', taskId: 9 };
    const outcomes = [
      fetched(1, 40),
      deferred,
      fetched(2, 40),
      fetched(3, 40),
      fetched(4, 500),
      fetched(5, 1),
    ];
    const parts = splitReport(reportOf(outcomes), 100);
    expect(parts.map((part) => part.outcomes.map(({ taskId }) => taskId))).toEqual([
      [1, 2],
      [3],
      [4],
      [5],
      [9],
    ]);
    expect(parts.map(({ part, final }) => [part, final])).toEqual([
      [0, false],
      [1, false],
      [2, false],
      [3, false],
      [4, true],
    ]);
    expect(parts.map(({ permits }) => [permits[0]!.sent, permits[0]!.finished])).toEqual([
      ...Array(4).fill([0, false]),
      [7, true],
    ]);
    expect(parts.map(({ archive }) => archive?.key ?? null)).toEqual([...Array(4).fill('warc/1'), null]);
    expect(parts.flatMap(({ robots }) => robots)).toHaveLength(1);
    expect(parts.flatMap(({ quality }) => quality)).toHaveLength(1);
    expect(parts.filter(({ pack }) => pack)).toHaveLength(1);
    expect(parts.filter(({ cookies }) => cookies)).toHaveLength(1);
    expect(parts.map(({ trouble }) => trouble)).toEqual([null, null, null, null, 'something']);
  });
});

const SEALS = [
  ['without a fleet key', openMessageSeal([]), 'gzip'],
  ['with a fleet key', openMessageSeal(['k'.repeat(43)]), 'sealed'],
] as const;

function answeredBatch(): Batch {
  const batch = batchOf(5, ['a.example'], 3);
  batch.tasks.forEach((task, index) => {
    Object.assign(task, { id: index + 1, url: `https://a.example/${index}` });
  });
  const robots = [{ origin: 'https://a.example', url: 'https://a.example/robots.txt', permit: 0 }];
  const job = { ...batch.job, spec: specOf({ follow: 'host' }) };
  return { ...batch, job, robots, archiveKey: 'warc/1', packKey: 'shards/1' };
}

describe.each(SEALS)('an answer of Lambda %s', (_, seal, packed) => {
  const batch = answeredBatch();
  const files = { archive: { key: 'warc/1-0.warc.gz', bytes: 9 }, pack: { key: 'shards/1-0.tar', bytes: 9 } };
  const parts = splitReport(
    reportOf(
      [1, 2, 3].map((id) => fetched(id, 900)),
      files,
    ),
    1_000,
  );

  function memoryBlobs(): Pick<Blobs, 'put' | 'read'> & { stored: Map<string, Uint8Array> } {
    const stored = new Map<string, Uint8Array>();
    return {
      stored,
      put: async (key, bytes) => void stored.set(key, bytes),
      read: async (key) => (stored.has(key) ? Buffer.from(stored.get(key)!) : null),
    };
  }

  const optionsOf = (blobs: object) => ({
    blobs: blobs as Blobs,
    ...{ seal, batch },
    keyOf: ({ part }: Report) => `warc/1-x-answer-${part}`,
    onUnstored: (part: Report) => ({ ...part, outcomes: [] }),
  });

  async function decoded(encoded: Awaited<ReturnType<typeof encodeParts>>, blobs: object): Promise<Report[]> {
    const reports: Report[] = [];
    for await (const report of decodeParts(encoded, { batch, seal, blobs: async () => blobs as Blobs }))
      reports.push(report);
    return reports;
  }

  test('comes back as it was, packed and, where it has no room, by way of the blobs', async () => {
    const blobs = memoryBlobs();
    const within = await encodeParts(parts, optionsOf(blobs));
    expect(within.map((part) => Object.keys(part))).toEqual(Array(3).fill([packed]));
    expect(await decoded(within, blobs)).toEqual(parts);
    const bytesMax = JSON.stringify(within[0]).length + 100;
    const beyond = await encodeParts(parts, { ...optionsOf(blobs), bytesMax });
    expect(beyond.map((part) => Object.keys(part)[0])).toEqual([packed, 'key', 'key']);
    expect(blobs.stored.size).toBe(2);
    expect(await decoded(beyond, blobs)).toEqual(parts);
    for (const [key, bytes] of blobs.stored) blobs.stored.set(key, Buffer.concat([bytes, Buffer.from(' ')]));
    await expect(decoded(beyond, blobs)).rejects.toThrow('a part of the answer was changed');
  });

  test('a part that cannot be stored is told otherwise, one that is gone or elsewhere is an error', async () => {
    const full = { put: () => Promise.reject(new Error('full')) };
    const encoded = await encodeParts(parts, { ...optionsOf(full), bytesMax: 10 });
    expect((await decoded(encoded, full)).map(({ outcomes }) => outcomes)).toEqual([[], [], []]);
    await expect(decoded([{ key: 'warc/1-x-answer-0', sha256: '' }], memoryBlobs())).rejects.toThrow(
      'is missing',
    );
    await expect(decoded([{ key: 'warc/2-x-answer-0', sha256: '' }], memoryBlobs())).rejects.toThrow(
      'a location that is not allowed',
    );
    await expect(decoded([{ key: 'warc/1-0.warc.gz', sha256: '' }], memoryBlobs())).rejects.toThrow(
      'a location that is not allowed',
    );
    const others: Partial<Report>[] = [
      { batchId: 6 },
      { version: (WIRE_VERSION + 1) as typeof WIRE_VERSION },
      { outcomes: {} as Report['outcomes'] },
    ];
    for (const other of others) {
      const encodedOther = await encodeParts([{ ...reportOf([], files), ...other }], optionsOf(full));
      await expect(decoded(encodedOther, full)).rejects.toThrow('the function sent a report');
    }
  });
});

describe('a batch for Lambda', () => {
  const batch = answeredBatch();
  const [plain, signed] = [openMessageSeal([]), openMessageSeal(['k'.repeat(43)])];
  const eventOf = (seal: typeof plain) =>
    JSON.parse(encodeBatch(batch, { drainKey: 'd', clockOffsetMs: 0 }, seal)!.payload.toString());

  test('comes as it was sent, signed or not', async () => {
    for (const seal of [plain, signed])
      expect(await decodeBatch(eventOf(seal).batch, seal, Date.now())).toEqual(batch);
  });

  test('is refused without the key of the function, and when it is old', async () => {
    const { batch: sealed } = eventOf(signed);
    expect(JSON.stringify(sealed)).not.toContain('a.example');
    const now = Date.now();
    await expect(decodeBatch(eventOf(plain).batch, signed, now)).rejects.toThrow('the run has none');
    await expect(decodeBatch(sealed, plain, now)).rejects.toThrow('the function has none');
    const other = openMessageSeal(['x'.repeat(43)]);
    await expect(decodeBatch(sealed, other, now)).rejects.toThrow('another fleet key');
    await expect(decodeBatch(sealed, signed, now + 600_000)).rejects.toThrow('600 s ago');
  });

  test('the answer to it is good for nothing else', async () => {
    const none = { blobs: null as never, seal: signed, keyOf: () => 'k', onUnstored: (part: Report) => part };
    const report = reportOf([], { archive: null, pack: null });
    const encoded = await encodeParts([report], { ...none, batch });
    const read = async (parts: typeof encoded, of: Batch, seal = signed) => {
      const found = decodeParts(parts, { batch: of, seal, blobs: () => Promise.reject(new Error('none')) });
      return (await found.next()).value;
    };
    expect(await read(encoded, batch)).toEqual(report);
    const epoch = { ...batch.job, epoch: 'other' };
    for (const other of [
      { ...batch, id: 6 },
      { ...batch, job: epoch },
      { ...batch, archiveKey: 'warc/2' },
    ])
      await expect(read(encoded, other)).rejects.toThrow('belongs elsewhere');
    await expect(read([{ plain: report }], batch)).rejects.toThrow('not signed');
    await expect(read(encoded, batch, plain)).rejects.toThrow('is not a report');
    await expect(read([null as never], batch)).rejects.toThrow('is not a report');
  });
});

describe('how many calls at once', () => {
  test('halves once for a flock of refusals, and grows back slowly, never beyond', async () => {
    let now = 0;
    const limit = new ConcurrencyLimit(40, () => now);
    for (let i = 0; i < 40; i++) expect(await limit.enter(0)).toBe(true);
    expect(await limit.enter(0)).toBe(false);
    for (let i = 0; i < 10; i++) limit.onThrottled();
    expect(limit.limit).toBe(20);
    now = 1_500;
    limit.onThrottled();
    expect(limit.limit).toBe(10);
    now = 11_600;
    expect(limit.limit).toBe(14);
    now = 1_000_000;
    expect(limit.limit).toBe(40);
  });

  test('never less than one, and half of what was under way when that was less', async () => {
    let now = 0;
    const limit = new ConcurrencyLimit(1_000, () => now);
    for (let i = 0; i < 6; i++) await limit.enter(0);
    limit.onThrottled();
    expect(limit.limit).toBe(3);
    for (let i = 0; i < 6; i++) limit.leave();
    for (now = 2_000; now < 4_000; now += 1_001) limit.onThrottled();
    expect(limit.limit).toBe(1);
  });

  test('who waits enters in turn, or not at all once it is closed', async () => {
    const limit = new ConcurrencyLimit(1);
    await limit.enter(0);
    const [second, third] = [limit.enter(5_000), limit.enter(5_000)];
    limit.leave();
    expect(await second).toBe(true);
    limit.close();
    expect(await third).toBe(false);
    expect(await limit.enter(5_000)).toBe(false);
  });
});

describe('the cost', () => {
  const size = { memoryMb: 2_048, storageMb: 512, architecture: 'x86_64' } as const;

  test('is what the log says was billed, at the price of memory, storage and architecture', () => {
    const text =
      'x\nREPORT RequestId: 3f-1\tDuration: 102.25 ms\tBilled Duration: 250 ms\tMemory Size: 128 MB\tMax Memory Used: 61 MB\t\n';
    expect(billedMsOf(text)).toBe(250);
    expect(billedMsOf('{"type":"platform.report","record":{"metrics":{"billedDurationMs": 7}}}')).toBe(7);
    expect(billedMsOf('nothing of the kind')).toBe(null);
    expect(usageOfCall({ billedMs: 1_000 }, size)).toEqual({
      lambdaCalls: 1,
      lambdaGbSeconds: 2,
      lambdaStorageGbSeconds: 0,
    });
    const arm = { memoryMb: 1_024, storageMb: 1_536, architecture: 'arm64' } as const;
    expect(totalOf(billOf(usageOfCall({ billedMs: 1_000 }, arm), PRICES_DEFAULT))).toBeCloseTo(
      0.2e-6 + 0.0000133334 + 0.0000000309,
      12,
    );
  });

  test('adds up, and counts the time that was waited where the log is silent', () => {
    const meter = new CostMeter();
    meter.add({ logResult: undefined, waitedMs: 500 }, size);
    meter.add({ logResult: Buffer.from('"billedDurationMs":500').toString('base64'), waitedMs: 9_000 }, size);
    expect(meter.sum).toMatchObject({ invocations: 2, gbSeconds: 2 });
  });
});

describe('a worker in Lambda', () => {
  test("its clock is the coordinator's, set anew with each call", () => {
    const clock = new InvocationClock();
    clock.begin(60_000);
    expect(Math.abs(clock.now() - Date.now() - 60_000)).toBeLessThan(20_000);
    clock.begin(-60_000);
    expect(Math.abs(clock.now() - Date.now() + 60_000)).toBeLessThan(20_000);
  });

  test('writes its metrics as one line that CloudWatch reads', () => {
    const failed: Outcome = {
      kind: 'failed',
      taskId: 2,
      code: 'reset',
      detail: '',
      page: null,
      retryAfterMs: null,
      trace: traceOf({ bytes: 11 }),
    };
    const report = reportOf([fetched(1, 0), failed, { kind: 'deferred', taskId: 3 }]);
    const job = { id: 1, name: 'shop', specHash: '', spec: specOf(), bundle: null, epoch: '' };
    const line = metricsLine({ id: 5, job }, [report], { now: T0, durationMs: 12.4, cold: true });
    expect(line).not.toContain('\n');
    const said = JSON.parse(line);
    expect(said).toMatchObject({ Job: 'shop', Pages: 1, Failures: 1, Deferred: 1, Bytes: 111, Duration: 12 });
    expect(said.Worker).toBe(report.worker);
    const [directive] = said._aws.CloudWatchMetrics;
    expect(directive).toMatchObject({ Namespace: 'Seine', Dimensions: [['Job']] });
    expect(said._aws.Timestamp).toBe(T0);
    expect(directive.Metrics.length).toBeGreaterThan(4);
    for (const { Name } of directive.Metrics) expect(said[Name]).toEqual(expect.any(Number));
  });

  test('may write its log and use its own pages, and nothing else', () => {
    const wanted = { name: 'seine', region: 'eu-west-1', blobs: 's3://bucket/crawl/' } as Wanted;
    const text = JSON.stringify(policyOf(wanted));
    expect(text).toContain('"arn:aws:s3:::bucket/crawl/*"');
    expect(text).toContain('arn:aws:logs:eu-west-1:*:log-group:/aws/lambda/seine:*');
    expect(text).not.toMatch(/"\*"|s3:\*|logs:\*"/);
    expect(JSON.stringify(policyOf({ ...wanted, region: 'cn-north-1' }))).toContain(
      '"arn:aws-cn:s3:::bucket"',
    );
  });
});
