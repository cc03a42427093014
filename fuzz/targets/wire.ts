import { zstdCompressSync } from 'node:zlib';
import { type Batch, type Report, WIRE_VERSION } from '../../src/core/batch/batch.ts';
import { batchProblem } from '../../src/core/batch/check-batch.ts';
import { makeReportCheck } from '../../src/core/batch/check-report.ts';
import type { Outcome, QualityDelta } from '../../src/core/batch/outcome.ts';
import { checkReport, splitReport } from '../../src/core/batch/report.ts';
import { FAILURES } from '../../src/core/failures.ts';
import * as bullmq from '../../src/transport/bullmq/wire.ts';
import * as lambda from '../../src/transport/lambda/wire.ts';
import { type MessageSeal, openMessageSeal } from '../../src/transport/message-seal.ts';
import { packPiece } from '../../src/transport/packed-report.ts';
import { batchOf } from '../../test/support/coordinator/progress-reports.ts';
import { specOf } from '../../test/support/fixtures.ts';
import { reportOn } from '../../test/support/fleet/report-examples.ts';
import { HOSTILE_TEXTS } from '../hostile-texts.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * Messages between coordinator and workers. Text that begins with `{` is a report: it arrives as it was sent, in one
 * piece or several, and what makes no sense in it is left out. Other bytes are packed messages, mostly damaged: they are
 * refused, or unpacked within bounds. Each reader of messages has its place in `readers`. A list is a forged message,
 * unpacked: its kind, and a good one with something changed.
 */

const GOOD_BATCH = goodBatch();
const BATCH: Batch = {
  ...GOOD_BATCH,
  proxies: [],
  ...{ id: 7, archiveKey: 'archive/1/7', packKey: 'shards/1/7', version: WIRE_VERSION },
  ...{ permits: [], robots: [] },
  tasks: Array.from({ length: 8 }, (_, index) => ({
    ...GOOD_BATCH.tasks[0]!,
    ...{ id: index + 1, url: 'https://a.example/' },
  })),
};

const [PLAIN, SIGNED] = [openMessageSeal([]), openMessageSeal(['k'.repeat(43)])];
const ABOUT = { keys: bullmq.fleetKeys('bull'), batch: BATCH };
const BATCH_ABOUT = { keys: ABOUT.keys, sentId: 'a-1', queue: 'http', now: 0 } as const;
const isReport = makeReportCheck(BATCH);

const isGoodReport = makeReportCheck(GOOD_BATCH);

function goodBatch(): Batch {
  const batch = batchOf(7, ['a.example', 'b.example'], 7);
  batch.job = { ...batch.job, spec: specOf({ follow: 'host' }) };
  batch.robots = [{ origin: 'http://a.example', url: 'http://a.example/robots.txt', permit: 0 }];
  batch.proxies = [{ id: 'p', url: 'http://proxy.example:8080' }];
  return batch;
}

/** As somebody without a key can write it: what it unpacks to is read where nothing is signed. */
const unsigned = (bytes: Buffer) => Buffer.concat([Buffer.of(0), bytes]);
const openReply = (kind: 'report' | 'lost' | 'taken', body: Buffer, seal = PLAIN) =>
  bullmq.openReply({ kind, sentId: 'a-1', body }, { ...ABOUT, seal });

const readers: ((bytes: Buffer) => unknown)[] = [
  (bytes) => bullmq.openBatch(unsigned(bytes), { ...BATCH_ABOUT, seal: PLAIN }),
  (bytes) => bullmq.openBatch(bytes, { ...BATCH_ABOUT, seal: SIGNED }),
  (bytes) => openReply('report', unsigned(bytes)),
  (bytes) => openReply('lost', unsigned(bytes)),
  (bytes) => openReply('taken', bytes),
  (bytes) => openReply('report', bytes, SIGNED),
  (bytes) => bullmq.readReply([bytes]),
  (bytes) => lambda.unpack({ gzip: bytes.toString('base64') }),
  (bytes) =>
    collect(
      lambda.decodeParts([{ gzip: bytes.toString('base64') }], {
        batch: BATCH,
        seal: PLAIN,
        blobs: () => Promise.reject(new Error('no blobs here')),
      }),
    ),
  (bytes) => lambda.decodeBatch({ sealed: bytes.toString('base64') }, SIGNED, 0),
];

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const TEXTS = ['https://a.example/', 'p', 'k', '', ...HOSTILE_TEXTS];
const NUMBERS: unknown[] = [0, 1, 5, 1e15];
const ODD: unknown[] = [null, -1, 0.5, 1e300, '5', [], {}, true];

function outcome(random: Random, taskId: number): Outcome {
  const trace = { startedAt: 1, durationMs: 1, httpStatus: 200, bytes: 1 };
  const page = {
    route: null,
    httpStatus: 200,
    contentType: 'text/html',
    bytes: 1,
    sha256: 'x',
    archive: random.oneIn(2) ? { offset: 0, length: 1 } : null,
    media: null,
    robotsTags: null,
    etag: null,
    lastModified: null,
  };
  return random.pick<() => Outcome>([
    () => ({
      kind: 'fetched',
      taskId,
      page,
      links: random.list(0, 5, () => ({
        url: random.pick(TEXTS),
        host: random.pick(TEXTS),
        priority: 0,
        route: null,
        meta: Object.fromEntries([[random.pick(TEXTS), 1]]),
      })),
      records: random.list(0, 3, () => ({ key: random.pick(TEXTS), json: '{}', hash: 'x', merge: false })),
      shows: [],
      trace,
    }),
    () => ({ kind: 'unchanged', taskId, page: null, trace }),
    () => ({ kind: 'deferred', taskId }),
    () => ({
      kind: 'failed',
      taskId,
      code: random.pick(['http-5xx', ...HOSTILE_TEXTS]) as never,
      detail: random.pick(TEXTS),
      page: null,
      retryAfterMs: null,
      trace: null,
    }),
  ])();
}

function quality(random: Random): QualityDelta {
  const number = () => random.pick(random.oneIn(4) ? ODD : NUMBERS) as number;
  return {
    route: random.pick(TEXTS),
    records: number(),
    invalid: number(),
    filled: Object.fromEntries(random.list(0, 4, () => [random.pick(TEXTS), number()])),
  };
}

function report(random: Random): Report {
  return {
    version: WIRE_VERSION,
    batchId: 7,
    part: 0,
    final: true,
    worker: random.pick(TEXTS),
    startedAt: 1,
    durationMs: 1,
    permits: [{ host: random.pick(TEXTS), sent: 1, lastSentAt: 1, finished: true }],
    robots: random.list(0, 1, () => ({
      kind: 'failed',
      origin: random.pick(TEXTS),
      code: random.pick(TEXTS) as never,
      detail: 'x',
      trace: null,
    })),
    outcomes: random.list(0, 8, (index) => outcome(random, index + 1)),
    quality: random.list(0, 3, () => quality(random)),
    archive: { key: 'k', bytes: 1 },
  };
}

/** A good message with one or two values replaced by others, or taken away. */
function forged(random: Random): Buffer {
  const kind = random.pick(['report', 'batch'] as const);
  const message: unknown = JSON.parse(JSON.stringify(kind === 'report' ? reportOn(GOOD_BATCH) : GOOD_BATCH));
  for (let changes = 1 + random.below(2); changes > 0; changes--) {
    let at = message as Record<string, unknown>;
    for (;;) {
      const names = Object.keys(at);
      if (names.length === 0) break;
      const name = random.pick(names);
      const inner = at[name];
      if (typeof inner === 'object' && inner !== null && !random.oneIn(5)) {
        at = inner as Record<string, unknown>;
        continue;
      }
      if (random.oneIn(6)) delete at[name];
      else
        at[random.oneIn(8) ? random.pick(HOSTILE_TEXTS) : name] = random.pick([...ODD, ...TEXTS, ...NUMBERS]);
      break;
    }
  }
  return Buffer.from(JSON.stringify([kind, message]));
}

function parsedOrNull(input: Buffer): unknown {
  try {
    return JSON.parse(input.toString('utf8'));
  } catch {
    return null;
  }
}

function checkForged(input: Buffer): void {
  const parsed = parsedOrNull(input);
  // Bytes of another kind may begin in the same way.
  if (!Array.isArray(parsed)) return;
  const [kind, message] = parsed as [string, unknown];
  const problem = kind === 'report' ? isGoodReport(message) : batchProblem(message);
  must(problem === null || problem.length > 0, `a ${kind} is neither good nor bad`);
  if (problem !== null || kind !== 'report') return;
  // What is accepted can be settled.
  const { report: checked } = checkReport(message as Report);
  for (const part of splitReport(checked, 4))
    must(isGoodReport(part) === null, 'a part of a good report is not good');
}

export function openWireTarget(): Target {
  return {
    generate(random) {
      if (random.oneIn(3)) return forged(random);
      const json = Buffer.from(JSON.stringify(report(random)));
      if (!random.oneIn(3)) return json;
      const packed = random.oneIn(2) ? zstdCompressSync(json) : sealedReport(report(random), SIGNED);
      return mutate(packed, random);
    },
    async check(input) {
      if (input[0] === 0x5b) {
        checkForged(input);
        return;
      }
      const sent = reportOf(input);
      if (sent !== null) {
        await checkSent(sent);
        return;
      }
      for (const read of readers) {
        try {
          await read(input);
        } catch (error) {
          must(error instanceof Error, 'what is thrown is no error');
        }
      }
    },
  };
}

function sealedReport(sent: Report, seal: MessageSeal): Buffer {
  return bullmq.sealPiece(packPiece(sent), { part: sent.part, sentId: 'a-1' }, { ...ABOUT, seal });
}

function reportOf(input: Buffer): Report | null {
  if (input[0] !== 0x7b) return null;
  try {
    return JSON.parse(input.toString('utf8')) as Report;
  } catch {
    return null;
  }
}

async function checkSent(sent: Report): Promise<void> {
  const reply = { kind: 'report', sentId: 'a-1', report: sent } as const;
  for (const seal of [PLAIN, SIGNED]) {
    const fields = bullmq.replyFields('report', 'a-1', sealedReport(sent, seal));
    const raw = bullmq.readReply(fields.map((part) => Buffer.from(part as string)));
    mustEqual(bullmq.openReply(raw, { ...ABOUT, seal }), reply, 'through Redis');
  }
  const problem = isReport(sent);
  for (const seal of [PLAIN, SIGNED]) {
    const noBlobs = () => Promise.reject(new Error('no blobs here'));
    const options = { blobs: null as never, batch: BATCH, seal };
    const parts = await lambda.encodeParts([sent], {
      ...options,
      keyOf: () => 'k',
      onUnstored: (part) => part,
    });
    const came = collect(lambda.decodeParts(parts, { ...options, blobs: noBlobs }));
    if (problem === null) mustEqual(await came, [sent], 'through Lambda');
    else
      must(
        String(await came.catch(String)).includes(`not valid: ${problem}`),
        'a report that is not valid came through Lambda',
      );
  }
  const { report: checked } = checkReport(sent);
  for (const { filled, records, invalid } of checked.quality)
    must(
      [records, invalid, ...Object.values(filled)].every(
        (count) => Number.isSafeInteger(count) && count >= 0,
      ),
      'a figure of quality is no count',
    );
  for (const result of [...checked.outcomes, ...checked.robots])
    must(result.kind !== 'failed' || Object.hasOwn(FAILURES, result.code), 'a failure code is unknown');
  mustEqual(checkReport(checked), { report: checked, problems: [] }, 'checked again');
  const split = splitReport(checked, 4);
  const ids = (reports: Report[]) =>
    reports.flatMap(({ outcomes }) => outcomes.map(({ taskId }) => taskId)).sort((a, b) => a - b);
  mustEqual(ids(split), ids([checked]), 'outcomes of the parts');
  mustEqual(
    split.map(({ final }) => final),
    split.map((_, index) => index === split.length - 1),
    'the last part',
  );
}
