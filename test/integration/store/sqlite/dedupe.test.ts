import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fingerprint } from '../../../../src/core/url/fingerprint.ts';
import type { Job, Store } from '../../../../src/ports/store.ts';
import { openSqliteStore } from '../../../../src/store/sqlite/sqlite-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import { collect, createJob, enqueue, tasksOf, temporaryFolder } from '../../../support/fixtures.ts';

/** So few that a load is begun, written and done many times in a test. */
const GATHERED = 40;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let path: string;
let opened: Store[] = [];
const open = (at = path) => {
  const store = openSqliteStore(at, { urlsGathered: GATHERED });
  opened.push(store);
  return store;
};
beforeEach(async () => {
  folder = await temporaryFolder();
  path = join(folder.dir, 'seine.db');
});
afterEach(async () => {
  for (const store of opened) await store.close().catch(() => {});
  opened = [];
  await folder.remove();
});

function inFile<T>(at: string, work: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(at);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

const stateOf = (at = path) =>
  inFile(at, (db) => db.prepare('SELECT indexed_to, filtered FROM seen_state').get()) as {
    indexed_to: number;
    filtered: number;
  };

const indexed = (at = path) =>
  inFile(at, (db) => Number((db.prepare('SELECT count(*) AS n FROM seen').get() as { n: number }).n));

/** What a death at this moment leaves behind. */
function copyOfNow(name: string): string {
  const copy = join(folder.dir, `${name}.db`);
  for (const ending of ['', '-wal'])
    if (existsSync(path + ending)) copyFileSync(path + ending, copy + ending);
  return copy;
}

/** A multiplier and a modulus without a common factor: every number once, in no order. */
const urlsOf = (from: number, count: number) =>
  Array.from(
    { length: count },
    (_, n) => `https://h${(from + n) % 3}.example/${((from + n) * 7_919) % 10_007}`,
  );

/** Pairs of URLs with the same slot or with neighbouring ones, which hashes of a host bring once in a while. */
function crowdOf(): string[] {
  const bySlot = new Map<number, string>();
  const crowd = new Set<string>();
  for (let n = 0; n < 200_000; n++) {
    const url = `https://crowd.example/${n}`;
    const slot = fingerprint(url, 'crowd.example', SEED);
    for (const near of [slot - 1, slot, slot + 1]) {
      const other = bySlot.get(near);
      if (other) crowd.add(other).add(url);
    }
    bySlot.set(slot, url);
  }
  return [...crowd];
}

/** With a known seed it is known which URLs collide. Before the job has any. */
const SEED = 12_345;
const fixSeed = () => inFile(path, (db) => db.exec(`UPDATE jobs SET seed = ${SEED}`));

async function expectEach(store: Store, job: Job, urls: readonly string[]): Promise<void> {
  const counts = { accepted: 0, duplicates: urls.length };
  expect(await enqueue(store, job, tasksOf(...urls))).toMatchObject(counts);
  expect((await collect(store.views.tasks(job.id))).map(({ url }) => url).sort()).toEqual([...urls].sort());
  await expectBalance(store, job);
}

test('a death at any moment of writing the index neither forgets a URL nor takes one twice', async () => {
  const store = open();
  const job = await createJob(store);
  fixSeed();
  const crowd = crowdOf();
  expect(crowd.length).toBeGreaterThan(20);
  const wanted = urlsOf(0, 240);
  for (const [at, url] of crowd.entries()) wanted.splice((at * 37) % wanted.length, 0, url);
  const phases = new Set<string>();
  const added: string[] = [];
  for (let step = 0; added.length < wanted.length; step++) {
    const chunk = wanted.slice(added.length, added.length + 1 + (step % 7));
    expect(await enqueue(store, job, tasksOf(...chunk))).toMatchObject({ accepted: chunk.length });
    added.push(...chunk);
    const copy = copyOfNow(`step-${step}`);
    const [rows, { indexed_to: mark }] = [indexed(copy), stateOf(copy)];
    phases.add(rows === mark ? 'between loads' : 'in a load');
    const survivor = open(copy);
    await expectEach(survivor, job, added);
    // Everything goes on there, through the next loads.
    const later = urlsOf(5_000, 2 * GATHERED);
    expect(await enqueue(survivor, job, tasksOf(...later, ...added))).toMatchObject({
      accepted: later.length,
    });
    for (const url of crowd.filter((one) => added.includes(one)))
      expect((await survivor.views.task(job.id, url))?.url).toBe(url);
    await survivor.close();
  }
  expect(phases).toEqual(new Set(['between loads', 'in a load']));
  expect(stateOf().indexed_to).toBeGreaterThan(200);
});

test('a transaction that fails in the middle of a load takes nothing with it', async () => {
  const store = open();
  const job = await createJob(store);
  const added = urlsOf(0, GATHERED + 5);
  await enqueue(store, job, tasksOf(...added));
  inFile(path, (db) =>
    db.exec(`CREATE TRIGGER refuse BEFORE INSERT ON tasks WHEN new.url LIKE '%/poison'
      BEGIN SELECT raise(ABORT, 'refused'); END`),
  );
  for (let from = 100; from < 300; from += 9) {
    const chunk = urlsOf(from, 9);
    await expect(enqueue(store, job, tasksOf(...chunk, 'https://a.example/poison'))).rejects.toThrow(
      'refused',
    );
    expect(await store.frontier.knows(job.id, chunk[0]!)).toBe(false);
    expect(await enqueue(store, job, tasksOf(...chunk, added[0]!))).toMatchObject({
      accepted: 9,
      duplicates: 1,
    });
    added.push(...chunk);
  }
  await expectEach(store, job, added);
});

test('two writers that take turns in one file stay exact, and a reader beside them finds everything', async () => {
  const writers = [open(), open()];
  const job = await createJob(writers[0]!);
  const other = await createJob(writers[1]!, 'other');
  const reader = openSqliteStore(path, { readOnly: true });
  opened.push(reader);
  const added: string[] = [];
  for (let turn = 0; turn < 60; turn++) {
    const [one, two] = [writers[turn % 2]!, writers[(turn + 1) % 2]!];
    const chunk = urlsOf(turn * 8, 8);
    expect(await enqueue(one, job, tasksOf(...chunk))).toMatchObject({ accepted: 8 });
    expect(await two.frontier.knows(job.id, chunk[3]!)).toBe(true);
    expect(await enqueue(two, job, tasksOf(...chunk))).toMatchObject({ accepted: 0, duplicates: 8 });
    expect(await enqueue(two, other, tasksOf(...chunk))).toMatchObject({ accepted: 8 });
    expect((await reader.views.task(job.id, chunk[5]!))?.url).toBe(chunk[5]);
    expect(await reader.views.task(job.id, 'https://h0.example/none')).toBeNull();
    added.push(...chunk);
  }
  expect(stateOf().indexed_to).toBeGreaterThan(800);
  for (const writer of writers) {
    await expectEach(writer, job, added);
    await expectEach(writer, other, added);
  }
});

test('a writer that slept while another wrote the index knows what is in it', async () => {
  const [sleeper, busy] = [open(), open()];
  const job = await createJob(busy);
  const added = urlsOf(0, 2 * GATHERED);
  for (const url of added) await enqueue(sleeper, job, tasksOf(url));
  for (let from = 100; from < 400; from += 10) {
    added.push(...urlsOf(from, 10));
    await enqueue(busy, job, tasksOf(...urlsOf(from, 10)));
  }
  await expectEach(sleeper, job, added);
});

test('an index without a filter, or with one that has grown too large, is as exact', async () => {
  await open().close();
  inFile(path, (db) => {
    const insert = db.prepare('INSERT INTO seen_filter (capacity, count, bits) VALUES (?, ?, ?)');
    for (let level = 0; level < 8; level++)
      insert.run(262_144 << level, 262_144 << level, new Uint8Array(64));
  });
  const store = open();
  const job = await createJob(store);
  const added: string[] = [];
  for (let from = 0; from < 400; from += 10) {
    added.push(...urlsOf(from, 10));
    await enqueue(store, job, tasksOf(...urlsOf(from, 10)));
  }
  expect(stateOf()).toMatchObject({ filtered: 0 });
  await expectEach(store, job, added);
  await store.close();
  const again = open();
  await expectEach(again, job, added);
  expect(await enqueue(again, job, tasksOf(...urlsOf(1_000, 200)))).toMatchObject({ accepted: 200 });
});

test('after a clean end the filter has every URL of the index', async () => {
  const store = open();
  const job = await createJob(store);
  const added: string[] = [];
  for (let from = 0; from < 400; from += 10) {
    added.push(...urlsOf(from, 10));
    await enqueue(store, job, tasksOf(...urlsOf(from, 10)));
  }
  await store.close();
  expect(stateOf()).toMatchObject({ filtered: 1 });
  const { count } = inFile(path, (db) => db.prepare('SELECT count FROM seen_filter').get()) as {
    count: number;
  };
  expect(count).toBe(stateOf().indexed_to);
  await expectEach(open(), job, added);
});

test('where there is no filter, links that come with their neighbours are as exact', async () => {
  await open().close();
  inFile(path, (db) => db.exec('UPDATE seen_state SET filtered = 0'));
  const store = open();
  const job = await createJob(store);
  const page = (from: number, count: number) =>
    Array.from({ length: count }, (_, n) => `https://a.example/product-${from + n}.html`);
  // Every other one of the first hundreds: their neighbours are between them in the index.
  const added = page(0, 1_000).filter((_, n) => n % 2 === 0);
  await enqueue(store, job, tasksOf(...added));
  await enqueue(store, job, tasksOf(...page(50_000, 2 * GATHERED)));
  added.push(...page(50_000, 2 * GATHERED));
  expect(stateOf()).toMatchObject({ indexed_to: added.length, filtered: 0 });
  for (const [from, count, known] of [
    [100, 40, 20],
    [300, 100, 50],
    [995, 30, 2],
    [7_000, 30, 0],
    [9_990, 30, 0],
  ] as const) {
    const chunk = page(from, count);
    const fresh = chunk.filter((url) => !added.includes(url));
    expect(count - fresh.length).toBe(known);
    expect(await enqueue(store, job, tasksOf(...chunk))).toMatchObject({
      accepted: fresh.length,
      duplicates: known,
    });
    // Once more, when some of them are only remembered.
    expect(await enqueue(store, job, tasksOf(...chunk, ...chunk))).toMatchObject({ accepted: 0 });
    added.push(...fresh);
  }
  await expectEach(store, job, added);
});

test('the more URLs the index has, the more are gathered for it, up to a number', async () => {
  const store = open();
  const job = await createJob(store);
  const marks = new Set([0]);
  const all = Array.from({ length: 6_000 }, (_, n) => `https://h${n % 3}.example/${n}`);
  for (let from = 0; from < all.length; from += 20) {
    await enqueue(store, job, tasksOf(...all.slice(from, from + 20)));
    marks.add(stateOf().indexed_to);
  }
  const loads = [...marks].map((mark, at, each) => mark - (each[at - 1] ?? 0)).slice(1);
  expect(Math.max(...loads.slice(0, 10))).toBeLessThan(2 * GATHERED);
  expect(Math.min(...loads.slice(-10))).toBeGreaterThanOrEqual(3 * GATHERED);
  expect(Math.max(...loads.slice(-10))).toBeLessThan(4 * GATHERED);
  await expectEach(store, job, all);
});

test('short runs do not begin the same load again and again', async () => {
  let store = open();
  const job = await createJob(store);
  const all: string[] = [];
  for (let run = 0; run < 12; run++) {
    for (const url of urlsOf(run * 10, 10)) {
      await enqueue(store, job, tasksOf(url));
      all.push(url);
    }
    await store.close();
    expect(all.length - stateOf().indexed_to).toBeLessThanOrEqual(GATHERED);
    store = open();
  }
  expect(indexed()).toBe(stateOf().indexed_to);
  await expectEach(store, job, all);
});
