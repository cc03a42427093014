import { expect, test } from 'vitest';
import { PageCode } from '../../../../src/worker/batch/page-code.ts';

const codeOf = (late: string[]) =>
  new PageCode({
    batchId: 1,
    taskId: 2,
    name: "the handler of route 'product'",
    marks: null,
    onLateError: (_, detail) => late.push(detail) > 0,
  });

test('an error that nothing awaits names the code that started it, and where it was thrown', async () => {
  const early = codeOf([]);
  const running = early.run(1_000, () => new Promise<never>(() => {}));
  early.fail(new Error('boom'));
  await expect(running).rejects.toThrow(
    "the handler of route 'product' started something without await, and that failed: boom",
  );
  const late: string[] = [];
  const code = codeOf(late);
  code.run(1_000, () => 1);
  expect(code.fail(new Error('boom'))).toBe(true);
  expect(late[0]).toMatch(
    /^the handler of route 'product' started something without await, and that failed: boom \(.*page-code\.test\.ts:\d+/,
  );
});
