import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { print, printable, printJson } from '../../../src/cli/context.ts';
import { openDestination } from '../../../src/cli/export/destination.ts';
import { cleanLines } from '../../../src/tui/text.ts';

/** What a site or a file can put into a name, a message or a cell. */
const HOSTILE = 'a\u001b]0;title\u0007b\u001b[2Jc\u009b31md\u0008\u007fe\rf\u202eg\0h';
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

function written(stream: PassThrough): string {
  return (stream.read() as Buffer).toString();
}

test('no control character reaches a terminal; line ends and tabs do', () => {
  const stream = new PassThrough();
  print(stream, `one\t${HOSTILE}\ntwo ${HOSTILE}\n`);
  const text = written(stream);
  expect(text).not.toMatch(CONTROL);
  expect(text).toMatch(/^one\ta.*h\ntwo a.*h\n$/);
  expect(printable(HOSTILE)).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  expect(cleanLines('plain, ünïcode and 日本\n')).toBe('plain, ünïcode and 日本\n');
});

test('JSON is the same data, without control characters', () => {
  const stream = new PassThrough();
  printJson({ stdout: stream }, { [HOSTILE]: HOSTILE });
  const text = written(stream);
  expect(text.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  expect(JSON.parse(text)).toEqual({ [HOSTILE]: HOSTILE });
});

test.each([true, false])('an export to standard output, which is a terminal: %s', async (isTTY) => {
  const stream = Object.assign(new PassThrough(), { isTTY });
  const destination = await openDestination(undefined, stream, {} as never);
  await destination.write(`${HOSTILE}\n`);
  const text = written(stream);
  if (isTTY) expect(text).not.toMatch(CONTROL);
  else expect(text).toBe(`${HOSTILE}\n`);
});
