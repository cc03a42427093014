import { strToU8, zipSync } from 'fflate';
import { afterAll, describe, expect, test } from 'vitest';
import { WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import {
  batchOf,
  deliver,
  expectWhole,
  openSite,
  runDispatcherContract,
} from '../../../contract/dispatcher-contract.ts';
import { type LambdaSetup, openLambdaSetup, silent } from '../../../support/fleet/lambda-setup.ts';
import { FLEET_KEY } from '../../../support/seine-process.ts';

const setups = new Map<string, Promise<LambdaSetup>>();
afterAll(async () => {
  for (const setup of setups.values()) await (await setup).close();
});

/** All dispatchers of a folder share an emulator: its environments are slow to start. */
runDispatcherContract('lambda', async (blobsDir) => {
  const setup = setups.get(blobsDir) ?? openLambdaSetup(blobsDir);
  setups.set(blobsDir, setup);
  return (await setup).open();
});

/** Its clock is a minute late, and it takes no batch. */
const STRANGE = `
export async function handler(event) {
  if (event.kind !== 'warm') return { kind: 'refused', reason: 'counted with ' + event.clockOffsetMs };
  const now = Date.now() - 60000;
  const here = { seine: '0', wire: ${WIRE_VERSION}, environment: 'e', cold: false, blobs: process.env.SEINE_BLOBS };
  return { kind: 'here', here: { ...here, startedAt: now, endedAt: now } };
}`;

describe('a function with another clock', () => {
  test('is told the difference; what it refuses comes back as it went, with the reason', async () => {
    const site = await openSite();
    const setup = await openLambdaSetup('/nowhere', { zip: zipSync({ 'index.mjs': strToU8(STRANGE) }) });
    const warnings: string[] = [];
    const logger = { ...silent, warn: (text: string) => void warnings.push(text) };
    const dispatcher = await setup.open({ logger, fleetKeys: [] });
    const batch = batchOf(site, { paths: ['/1'] });
    const { reports } = await deliver(dispatcher, batch);
    await dispatcher.close();
    await setup.close();
    await site.close();
    expect(warnings).toEqual([expect.stringMatching(/differs from Lambda's by [4-7]\d\./)]);
    expectWhole(batch, reports);
    const offset = Number(/counted with (\d+)/.exec(reports[0]!.trouble ?? '')?.[1]);
    expect(Math.abs(offset - 60_000)).toBeLessThan(20_000);
  });
});

test('a function whose fleet key is another, or that only one side has, is refused before anything is sent', async () => {
  const setup = await openLambdaSetup('/nowhere', { concurrency: 1 });
  const hint = expect.stringContaining('seine lambda deploy');
  const other = 'x'.repeat(43);
  try {
    await expect(setup.open({ fleetKeys: [] })).rejects.toMatchObject({
      message: 'the function seine has a fleet key, and this run has none',
      hint,
    });
    await expect(setup.open({ fleetKeys: [other] })).rejects.toMatchObject({
      message: 'the function seine has another fleet key',
    });
    // What the run signs must be accepted, too.
    await expect(setup.open({ fleetKeys: [other, FLEET_KEY] })).rejects.toThrow('another fleet key');
    await (await setup.open({ fleetKeys: [FLEET_KEY, other] })).close();
  } finally {
    await setup.close();
  }
});
