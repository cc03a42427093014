import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LogLevel, makeJsonLogger, makeTextLogger } from '../../../../src/observe/logs/logger.ts';
import { openRotatingFile } from '../../../../src/observe/logs/rotating-file.ts';
import { temporaryFolder } from '../../../support/fixtures.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

const KEY = `seine_${'A'.repeat(43)}${'b'.repeat(6)}`;

function log(level: LogLevel, format: 'text' | 'json' = 'json') {
  const lines: string[] = [];
  const options = { level, write: (text: string) => void lines.push(text), now: () => 0 };
  return { lines, logger: format === 'json' ? makeJsonLogger(options) : makeTextLogger(options) };
}

test('an event is one line of JSON, with what is known of its job, batch and host', () => {
  const { lines, logger } = log('info');
  const ofJob = logger.withFields!({ job: 'shop-1' });
  ofJob.warn('a\nb\u009b"', { batch: 7, host: 'a.example' });
  ofJob.info('plain');
  expect(lines.every((line) => line.endsWith('\n') && line.indexOf('\n') === line.length - 1)).toBe(true);
  expect(lines[0]).not.toContain('\u009b');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    {
      time: '1970-01-01T00:00:00.000Z',
      level: 'warn',
      message: 'a\nb\u009b"',
      job: 'shop-1',
      batch: 7,
      host: 'a.example',
    },
    { time: '1970-01-01T00:00:00.000Z', level: 'info', message: 'plain', job: 'shop-1' },
  ]);
});

test.each<[LogLevel, string[]]>([
  ['quiet', ['error']],
  ['error', ['error']],
  ['warn', ['error', 'warn']],
  ['info', ['error', 'warn', 'info']],
  ['debug', ['error', 'warn', 'info', 'debug']],
])('level %s shows %s', (level, shown) => {
  const { lines, logger } = log(level);
  logger.error('x');
  logger.warn('x');
  logger.info('x');
  logger.debug?.('x');
  expect(lines.map((line) => JSON.parse(line).level)).toEqual(shown);
});

test('text is for people, and neither form shows API keys or controls a terminal', () => {
  const { lines, logger } = log('warn', 'text');
  logger.warn(`key ${KEY}\u001b[2J`, { batch: 3 });
  logger.error('broken');
  expect(lines[0]).toMatch(/^warning: key .* {"batch":3}\n$/);
  expect(lines[0]).not.toContain('\u001b');
  expect(lines[1]).toBe('error: broken\n');
  const json = log('warn');
  json.logger.warn('x', { note: 'seine' });
  expect(JSON.parse(json.lines[0]!)).toMatchObject({ note: 'seine' });
});

test('a log that is full becomes the last one, and only some are kept', () => {
  const path = join(folder.dir, 'serve.log');
  const write = openRotatingFile(path, { bytesMax: 100, kept: 2 });
  for (let n = 0; n < 20; n++) write(`${String(n).padStart(29, '0')}\n`);
  const files = readdirSync(folder.dir).sort();
  expect(files).toEqual(['serve.log', 'serve.log.1', 'serve.log.2']);
  for (const file of files) expect(statSync(join(folder.dir, file)).size).toBeLessThanOrEqual(100);
  const kept = ['serve.log.2', 'serve.log.1', 'serve.log']
    .map((file) => readFileSync(join(folder.dir, file), 'utf8'))
    .join('')
    .trim()
    .split('\n')
    .map(Number);
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 20 - kept.length + index));
  // Another process goes on where this one ended.
  const size = statSync(path).size;
  openRotatingFile(path, { bytesMax: 100, kept: 2 })('x'.repeat(99));
  expect(statSync(path).size).toBe(size > 1 ? 99 : size + 99);
  expect(existsSync(`${path}.3`)).toBe(false);
});

test('lines that cannot be written to the file go elsewhere, and break nothing', () => {
  const path = join(folder.dir, 'moved', 'serve.log');
  mkdirSync(join(folder.dir, 'moved'));
  const lines: string[] = [];
  const write = openRotatingFile(path, { elsewhere: (text) => void lines.push(text) });
  write('first\n');
  rmSync(join(folder.dir, 'moved'), { recursive: true });
  write('second\n');
  expect(lines).toEqual(['second\n']);
  expect(() => openRotatingFile(path)).toThrow(`cannot write the log file ${path} (ENOENT)`);
});
