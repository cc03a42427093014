import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CASES } from '../../../src/sites/hostile/behaviours.ts';
import { UMLAUTS } from '../../../src/sites/hostile/texts.ts';
import { LINKS_PER_PAGE_MAX } from '../../../src/worker/links/link-scanner.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { type HostileProcess, startHostileProcess } from '../../support/hostile/hostile-process.ts';
import { complaintsOf } from '../../support/hostile/hostile-visits.ts';
import { startHostileWorker, type WorkerProcess } from '../../support/hostile/hostile-worker.ts';

/** For a machine that does other things too; `scripts/measure/hostile.ts` asks for more. Bombs would be some 200 MB. */
const BOUNDS = { lateMs: 60_000, peakMb: 190 };

let web: HostileProcess;
let worker: WorkerProcess;

beforeAll(async () => {
  web = await startHostileProcess();
  const folder = await temporaryFolder();
  const authority = join(folder.dir, 'authority.pem');
  writeFileSync(authority, web.authority);
  // With the authority trusted, each certificate is refused for its own fault.
  worker = await startHostileWorker({ NODE_EXTRA_CA_CERTS: authority });
  await folder.remove();
});

afterAll(async () => {
  await web.close();
});

describe('a worker on the hostile web', () => {
  test.each(CASES.map((each) => [each.base, each.ending, each] as const))(
    '%s ends as %s',
    async (base, _, each) => {
      const facts = await worker.visit({ url: web.url, base, media: false });
      expect(complaintsOf(each, facts, BOUNDS)).toEqual([]);
    },
  );

  const bodies = CASES.filter(({ behaviour }) => behaviour.number <= 20);
  test.each(bodies.map((each) => [each.base, each.ending, each] as const))(
    '%s as an object to be stored ends as %s',
    async (base, _, each) => {
      const facts = await worker.visit({ url: web.url, base, media: true });
      expect(complaintsOf(each, facts, BOUNDS)).toEqual([]);
    },
  );

  test.each([
    ['expired', 'CERT_HAS_EXPIRED'],
    ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['wrong-host', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ])('a certificate that is %s is refused for that', async (name, code) => {
    const facts = await worker.visit({ url: web.url, base: `/37-bad-certificate/${name}`, media: false });
    expect(facts.details).toEqual([`the TLS handshake failed (${code})`]);
  });

  test('the same with a good certificate is fetched', async () => {
    const facts = await worker.hurry({ urls: [`${web.secure.trusted}/`], budgetMs: 30_000 });
    expect(facts.endings).toEqual(['fetched']);
  });

  test('text is read in the letters that it came in', async () => {
    const lettered = CASES.filter(({ behaviour }) => behaviour.name === 'charset');
    expect(lettered.length).toBeGreaterThan(1);
    for (const { base } of lettered) {
      const facts = await worker.visit({ url: web.url, base, media: false });
      expect([base, facts.titles]).toEqual([base, [UMLAUTS]]);
    }
  });

  test('a second response on the wire never passes for another page', async () => {
    for (const base of ['/8-short-content-length/longer-body', '/34-no-content-with-body/late']) {
      for (let round = 0; round < 5; round++) {
        await worker.hurry({ urls: [web.url + base], budgetMs: 30_000 });
        const next = await worker.visit({ url: web.url, base: '/48-slow', media: false });
        expect(next.titles).toEqual(next.titles.map(() => 'Slow, but there'));
      }
    }
  });

  test(`of a million links ${LINKS_PER_PAGE_MAX} are taken`, async () => {
    const facts = await worker.visit({ url: web.url, base: '/47-million-links', media: false });
    expect(facts.links).toBe(LINKS_PER_PAGE_MAX);
  });

  test('a batch ends with its time, whatever its hosts do', async () => {
    const stalling = CASES.filter(({ ending }) => /timeout$/.test(ending)).map(({ base }) => web.url + base);
    // Often enough that all connections are taken, and some wait for one.
    const urls = Array.from({ length: 10 }, () => stalling).flat();
    const facts = await worker.hurry({ urls, budgetMs: 400 });
    expect(new Set(facts.endings.filter((ending) => ending !== 'redirected'))).toEqual(new Set(['deferred']));
    expect(facts.tookMs).toBeLessThan(400 + BOUNDS.lateMs);
  });

  test('the worker is alive and well after all that', async () => {
    expect(await worker.close()).toEqual({ code: 0, stderr: '' });
  });
});
