import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const PACKAGES = new URL('../../../../src/transport/bullmq/bullmq-packages.ts', import.meta.url).href;
const IS_FAST = '%HasFastProperties(String.prototype)';

test('BullMQ and its client of Redis leave the methods of strings where V8 finds them fast', () => {
  const code = `const before = ${IS_FAST}; await import('${PACKAGES}'); console.log(before, ${IS_FAST});`;
  const options = ['--allow-natives-syntax', '--input-type=module', '--eval', code];
  expect(execFileSync(process.execPath, options, { encoding: 'utf8' }).trim()).toBe('true true');
});
