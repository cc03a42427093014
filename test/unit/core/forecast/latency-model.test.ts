import { expect, test } from 'vitest';
import { latencyModelOf, meanLatencyOf } from '../../../../src/core/forecast/latency-model.ts';
import { seeded } from '../../../../src/core/forecast/random.ts';

/** Twenty hosts, each with a fast answer and a slow one. */
const others = Array.from({ length: 40 }, (_, index) => ({
  host: `h${index >> 1}.example`,
  durationMs: index % 2 === 0 ? 60 : 1_500,
}));

/** Five times as slow. */
const slow = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    host: 'slow.example',
    durationMs: index % 2 === 0 ? 300 : 7_500,
  }));

/** What requests to the host take by the model: the middle of many draws, and how far nine of ten are from it. */
function drawn(requests: { host: string; durationMs: number }[], host: string, count = 1_000) {
  const model = latencyModelOf(requests);
  const random = seeded(7);
  const draws = Array.from({ length: 2_000 }, () => meanLatencyOf(model, host, count, random)).sort(
    (a, b) => a - b,
  );
  return { middle: draws[1_000]!, spread: draws[1_800]! / draws[1_000]! };
}

test('two slow answers are chance where other hosts are slow now and then; many are not', () => {
  const ratioOf = (count: number) => {
    const requests = [...others, ...slow(count)];
    return drawn(requests, 'slow.example').middle / drawn(requests, 'h0.example').middle;
  };
  expect(ratioOf(2)).toBeLessThan(1.5);
  expect(ratioOf(200)).toBeGreaterThan(2.5);
});

test('less is known of a host with few requests, and least of one without any', () => {
  const requests = [...others, ...slow(60)];
  const [none, few, many] = ['new.example', 'h0.example', 'slow.example'].map(
    (host) => drawn(requests, host).spread,
  );
  expect(none!).toBeGreaterThan(few!);
  expect(few!).toBeGreaterThan(many!);
});

test('what few requests will take is subject to chance, however much is known', () => {
  const requests = [...others, ...slow(2_000)];
  expect(drawn(requests, 'slow.example', 4).spread).toBeGreaterThan(
    1.05 * drawn(requests, 'slow.example').spread,
  );
});
