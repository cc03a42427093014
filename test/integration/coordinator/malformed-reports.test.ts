import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Batch, Report } from '../../../src/core/batch/batch.ts';
import { makeReportCheck } from '../../../src/core/batch/check-report.ts';
import type { Delivery, Dispatcher } from '../../../src/ports/dispatcher.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { reportOn } from '../../support/fleet/report-examples.ts';

/** A change of one place of a report: the place by number, as far as it has so many. */
interface Change {
  place: number;
  value: unknown;
}

const ODD_VALUES = [
  ...[null, true, 0, -1, 1.5, 1e300, -1e300, 2 ** 53, 4_294_967_296, '', 'x', '\0', 'a\0b', '\ud800'],
  ...[
    'file:///etc/passwd',
    'http://',
    'https://a.example',
    'constructor',
    '__proto__',
    '../../../x',
    '{',
    '[]',
  ],
  ...[[], {}, [null], [[]], { kind: 'fetched' }, { kind: 'deferred' }, 'x'.repeat(100_000)],
];

const changes = fc.array(
  fc.record({ place: fc.nat(), value: fc.oneof(fc.constantFrom(...ODD_VALUES), fc.jsonValue()) }),
  { minLength: 20, maxLength: 40 },
);

type Place = [holder: Record<string, unknown>, name: string];

function placesIn(value: unknown, found: Place[] = []): Place[] {
  if (typeof value !== 'object' || value === null) return found;
  for (const name of Object.keys(value)) {
    found.push([value as Record<string, unknown>, name]);
    placesIn((value as Record<string, unknown>)[name], found);
  }
  return found;
}

function malformed(report: Report, { place, value }: Change): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(report));
  const places = placesIn(copy);
  const [holder, name] = places[place % places.length]!;
  holder[name] = value;
  return JSON.parse(JSON.stringify(copy));
}

/** Workers of another machine, as the coordinator sees them: reports are checked, and a bad one loses its batch. */
function openWorkers(left: Change[]): Dispatcher & { refused: number; taken: number } {
  const workers = {
    ...{ workers: 1, slots: 4, refused: 0, taken: 0 },
    async dispatch(batch: Batch): Promise<Delivery> {
      const good = reportOn(batch);
      const change = left.pop();
      const report = change ? malformed(good, change) : good;
      const problem = makeReportCheck(batch)(report);
      if (problem === null) {
        workers.taken++;
        // As over Redis, where the message itself says of which batch it is: workers have numbers of their own.
        return { kind: 'report', report: { ...(report as Report), batchId: batch.id } };
      }
      workers.refused++;
      return { kind: 'lost', batchId: batch.id, reason: problem, blameless: true };
    },
    async drain() {},
    async close() {},
  };
  return workers;
}

test('no report ends a run, whatever is in it: it is refused, or what it says can be written down', async () => {
  const seen = { refused: 0, taken: 0 };
  await fc.assert(
    fc.asyncProperty(changes, async (all) => {
      const workers = openWorkers([...all]);
      const sources = Array.from({ length: 40 }, (_, i) => `http://${'abcd'[i % 4]}.example/${i}`);
      const { state, counters } = await crawl(
        {
          sources,
          // A pause that a report asks for is within what is allowed, and too long for a test.
          ...{ follow: 'host', batchSize: 5, limits: { pages: 60, seconds: 3 }, redirects: 'follow' },
          identity: { mode: 'browser' },
          breaker: { jobBatches: 1_000, hostFailures: 1_000 },
          retry: { attempts: 2, baseMs: 1, maxMs: 2 },
        },
        { through: () => workers },
      );
      expect(['done', 'stopped']).toContain(state);
      expect(counters.leased).toBe(0);
      seen.refused += workers.refused;
      seen.taken += workers.taken;
    }),
    { numRuns: 12 },
  );
  // Both sides of the property were tried.
  expect(seen.refused).toBeGreaterThan(20);
  expect(seen.taken).toBeGreaterThan(20);
});
