import { expect, test } from 'vitest';
import { whyNoProxy } from '../../../../src/core/proxies/row-proxy.ts';
import { specOf } from '../../../support/fixtures.ts';

const spec = specOf({ proxies: { pools: { dc: { from: { list: ['http://192.0.2.1:8080'] } } } } });

test.each([
  'gate.example:8080:bob:hunter2',
  'http://bob:hunter2@gate.example:8080',
  'bob:hunter2@gate.example',
  `hunter2${'x'.repeat(60)}`,
])('a row that names the proxy itself, %s, is refused without its password: the reason is stored', (pool) => {
  const reason = whyNoProxy({ pool }, spec);
  expect(reason).toMatch(/unknown proxy pool/);
  expect(reason).not.toContain('hunter2');
});

test('the name of a pool that is not there is told', () => {
  expect(whyNoProxy({ pool: 'home' }, spec)).toBe("unknown proxy pool 'home'");
  expect(whyNoProxy({ pool: 'constructor' }, spec)).toBe("unknown proxy pool 'constructor'");
  expect(whyNoProxy({ pool: 'dc' }, spec)).toBeNull();
});
