import { readFileSync, statSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fleetKeyCommand } from '../../../src/cli/commands/fleet/fleet-key.ts';
import { makeContext } from '../../../src/cli/context.ts';
import { doctorCommand } from '../../../src/cli/doctor/doctor.ts';
import { parseCommandLine } from '../../../src/cli/parse-args.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { startWorker } from '../../support/fleet/bullmq-fleet.ts';
import { type RedisServer, startRedis } from '../../support/servers/services.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let redis: RedisServer;
beforeAll(async () => {
  folder = await temporaryFolder();
  redis = await startRedis({ own: true });
});
afterAll(async () => {
  await redis.stop();
  await folder.remove();
});

/** What a command prints, in this very process. */
async function printed(...args: string[]): Promise<string> {
  let text = '';
  const write = (more: string) => {
    text += more;
  };
  const context = await makeContext(parseCommandLine(args), process);
  const command = args[0] === 'doctor' ? doctorCommand : fleetKeyCommand;
  await command({ ...context, stdout: { write } as NodeJS.WriteStream });
  return text;
}

test('a key is printed, or written to a new file that only its owner can read', async () => {
  const key = (await printed('fleet-key', 'create')).trim();
  expect(Buffer.from(key, 'base64url')).toHaveLength(32);
  expect(JSON.parse(await printed('fleet-key', 'create', '--json')).key).not.toBe(key);
  const file = `${folder.dir}/fleet.key`;
  expect(await printed('fleet-key', 'create', file)).toContain(`SEINE_FLEET_KEY_FILE=${file}`);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const made = readFileSync(file, 'utf8').trim();
  expect(loadConfig({}, { SEINE_FLEET_KEY_FILE: file }).config.fleetKey).toEqual([made]);
  await expect(printed('fleet-key', 'create', file)).rejects.toThrow('cannot write the fleet key: EEXIST');
  expect(readFileSync(file, 'utf8').trim()).toBe(made);
  const other = `${folder.dir}/other.key`;
  expect(JSON.parse(await printed('fleet-key', 'create', other, '--json'))).toEqual({ file: other });
});

test('what is no key is refused, without being quoted', async () => {
  expect(() => loadConfig({}, { SEINE_FLEET_KEY: 'password' })).toThrow(
    /^invalid value for SEINE_FLEET_KEY$/,
  );
  await expect(printed('fleet-key')).rejects.toThrow('seine fleet-key needs `create`');
  await expect(printed('fleet-key', 'made')).rejects.toThrow("got 'made' instead of create");
});

test('the doctor wants a key for a Redis elsewhere, and finds workers with another one', async () => {
  const key = 'k'.repeat(43);
  const worker = await startWorker(redis.url, folder.dir, { fleetKeys: ['x'.repeat(43)] });
  const about = async (dispatch: string) => {
    const args = ['doctor', '--json', '--dir', folder.dir, '--dispatch', dispatch];
    const text = await printed(...args);
    expect(text).not.toContain(key);
    const { checks, settings } = JSON.parse(text);
    const of = (list: { name: string }[], name: string) => list.find((each) => each.name === name);
    return { redis: of(checks, 'redis'), setting: of(settings, 'fleetKey') };
  };
  const here = redis.url.replace('redis:', 'bullmq:');
  expect(await about('bullmq://192.0.2.1:6379')).toMatchObject({
    redis: { ok: false, hint: expect.stringContaining('seine fleet-key create') },
    setting: { value: 'none' },
  });
  expect(await about(here)).toMatchObject({
    redis: { ok: true, warning: expect.stringContaining('neither signed nor encrypted') },
  });
  process.env.SEINE_FLEET_KEY = key;
  try {
    expect(await about(here)).toMatchObject({
      redis: {
        ok: true,
        detail: expect.stringContaining(
          'live workers: 0, 0 with a browser; messages are signed and encrypted',
        ),
        warning: expect.stringContaining('workers with another fleet key, or none: 1'),
      },
      setting: { value: '1 key' },
    });
  } finally {
    delete process.env.SEINE_FLEET_KEY;
    await worker.end();
  }
});
