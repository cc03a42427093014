import { describe, expect, test } from 'vitest';
import { SCOUTS } from '../../../src/coordinator/escalation/escalation-policy.ts';
import { REFUSALS_MAX } from '../../../src/coordinator/escalation/identities.ts';
import { REPEATS_MIN, TINY_BYTES } from '../../../src/coordinator/settle/repeated-pages.ts';
import { BLOCK_SIZES } from '../../../src/core/blocking/block-detection.ts';
import { BLOCK_HEADERS, BLOCK_MARKERS } from '../../../src/core/blocking/block-markers.ts';
import { ESCALATIONS } from '../../../src/core/escalation/escalation.ts';
import { RETRY_SHARE, STALE_MS } from '../../../src/core/escalation/score.ts';
import { LIMITS } from '../../../src/core/limits.ts';
import { read } from '../../support/docs/docs-text.ts';

describe('docs of identity and blocking', () => {
  test.each<[string, string, number, number]>([
    ['docs/identity.md', 'After three refusals in a row', 3, REFUSALS_MAX],
    ['docs/identity.md', 'at most 50 and 8 KB', 50, LIMITS.cookiesPerJar],
    ['docs/identity.md', 'at most 50 and 8 KB', 8 * 1024, LIMITS.cookieJarBytes],
    ['docs/identity.md', 'four tasks go ahead', 4, SCOUTS],
    ['docs/identity.md', '2 % of the tasks try a cheaper level', 0.02, RETRY_SHARE],
    ['docs/identity.md', '2 % of the tasks still escalate', 0.02, RETRY_SHARE],
    ['docs/identity.md', 'for 10 minutes', 600_000, STALE_MS],
    ['docs/blocking.md', 'more than 2,500 characters', 2_500, BLOCK_SIZES.someWords],
    ['docs/blocking.md', 'up to 700 characters', 700, BLOCK_SIZES.fewWords],
    ['docs/blocking.md', 'pages up to 8 KB', 8 * 1024, BLOCK_SIZES.smallBytes],
    ['docs/blocking.md', 'up to 64 KB', 64 * 1024, BLOCK_SIZES.lookedAtBytes],
    ['docs/blocking.md', 'eight URLs in a row', 8, REPEATS_MIN],
    ['docs/blocking.md', 'at most 2 KB', 2 * 1024, TINY_BYTES],
  ])('%s: %s', (path, words, meant, actual) => {
    expect(read(path).replace(/\s+/g, ' ')).toContain(words);
    expect(actual).toBe(meant);
  });

  test('name the escalations, and no defence that is not known', () => {
    for (const step of ESCALATIONS) expect(read('docs/identity.md')).toContain(`\`${step}\``);
    const known = new Set([...BLOCK_MARKERS, ...BLOCK_HEADERS].map(({ by }) => by));
    const [, list] = /only refusals have, of ([^.]+) and others/.exec(
      read('docs/blocking.md').replace(/\s+/g, ' '),
    )!;
    for (const name of list!.split(/, | and /)) expect(known, name).toContain(name);
  });
});
