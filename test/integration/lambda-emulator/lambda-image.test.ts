import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildLambdaImage, type LambdaImage } from '../../../src/cli/lambda/build-image.ts';
import type { Batch } from '../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import { layOutImage, parseRecipe } from '../../../src/lambda-emulator/image-folder.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { batchOf, deliver, expectWhole, openSite, type Site } from '../../contract/dispatcher-contract.ts';
import { groupOf, listProcesses } from '../../support/browser/browser-processes.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { type LambdaSetup, openLambdaSetup } from '../../support/fleet/lambda-setup.ts';

/** The files that the image would have, laid out as its Dockerfile says, run by the emulator with their own Chromium. */

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let image: LambdaImage;
beforeAll(async () => {
  folder = await temporaryFolder();
  image = await buildLambdaImage(join(folder.dir, 'image'));
});
afterAll(() => folder.remove());

describe('the image', () => {
  const recipe = () => parseRecipe(readFileSync(join(image.folder, 'Dockerfile'), 'utf8'));

  test('is Lambda’s own with the files of the folder, and starts the handler', async () => {
    expect(recipe()).toMatchObject({
      base: 'public.ecr.aws/lambda/nodejs:24',
      handler: 'index.handler',
      variables: { SEINE_BROWSER: 'bundled', SEINE_BROWSER_SANDBOX: 'off', HOME: '/tmp' },
    });
    expect(recipe().copies.flatMap(({ sources }) => sources)).toEqual([
      'chromium',
      'node_modules',
      'data_files',
      '*.mjs',
    ]);
    const target = join(folder.dir, 'task');
    await layOutImage(image.folder, target);
    for (const name of [
      'index.mjs',
      'watchdog-main.mjs',
      'chromium/chromium',
      'node_modules/playwright-core',
    ])
      expect(existsSync(join(target, name)), name).toBe(true);
    const { handler } = await import(join(target, 'index.mjs'));
    expect(handler).toBeInstanceOf(Function);
  });

  test('has another name when something else is in it, and takes no folder of somebody else', async () => {
    expect(image.tag).toMatch(/^\d+\.\d+\.\d+-[0-9a-f]{12}$/);
    expect((await buildLambdaImage(image.folder)).tag).toBe(image.tag);
    await writeFile(join(folder.dir, 'precious'), 'data');
    await expect(buildLambdaImage(folder.dir)).rejects.toThrow(
      'is not empty and not a build folder of Seine',
    );
    expect(existsSync(join(folder.dir, 'precious'))).toBe(true);
  });
});

describe('a function of the image', () => {
  let site: Site;
  let setup: LambdaSetup;
  let dispatcher: Dispatcher;
  beforeAll(async () => {
    site = await openSite();
    // It answers two seconds before its time is over: enough for Chromium to start on a busy machine.
    const size = { memoryMb: 2_048, timeoutSeconds: 20, concurrency: 1 };
    setup = await openLambdaSetup(folder.dir, { image: image.folder, ...size });
    dispatcher = await setup.open();
  });
  afterAll(async () => {
    await dispatcher.close();
    await setup.close();
    await site.close();
  });

  /** Of all tasks by the browser, with a picture of each page. */
  function browserBatch(id: number, paths: string[]): Batch {
    const route = { name: 'p', fetcher: 'browser', select: { title: 'title' } } as const;
    const browser = { screenshot: { of: 'page', format: 'png' } } as const;
    const batch = batchOf(site, { id, paths, spec: { routes: [{ ...route, browser }] } });
    const fetchMethod = {
      level: 0,
      fetcher: 'browser',
      headers: 'full',
      identity: null,
      pool: null,
    } as const;
    return {
      ...batch,
      needs: 'browser',
      tasks: batch.tasks.map((task) => ({ ...task, route: 'p', fetchMethod })),
    };
  }

  async function outcomesOf(batch: Batch): Promise<Outcome[]> {
    const { reports } = await deliver(dispatcher, batch);
    expectWhole(batch, reports);
    return reports.flatMap((report) => report.outcomes).sort((a, b) => a.taskId - b.taskId);
  }

  const environmentPid = () => setup.emulator.pidsOf('seine')[0]!;

  /** Its browser is the child of the watchdog, which is its own. */
  function browserPid(): number {
    const all = listProcesses();
    const watchdog = all.find(
      ({ parent, command }) => parent === environmentPid() && /watchdog/.test(command),
    );
    return all.find(({ parent }) => parent === watchdog?.pid)?.pid ?? -1;
  }

  const isAlive = (group: number) => groupOf(group).some(({ state }) => state !== 'Z');

  test('shows pages and takes pictures of them, and the next call has the same browser', async () => {
    expect(dispatcher.serves?.('browser')).toBe(true);
    expect(dispatcher.refusal?.('browser')).toBeNull();
    const outcomes = await outcomesOf(browserBatch(1, ['/1', '/missing']));
    expect(outcomes).toMatchObject([
      {
        kind: 'fetched',
        records: [{ json: '{"title":"/1"}' }],
        trace: { shots: [{ kind: 'screenshot', type: 'image/png' }] },
      },
      { kind: 'failed', code: 'not-found' },
    ]);
    const [shot] = (outcomes[0] as Extract<Outcome, { kind: 'fetched' }>).trace.shots!;
    expect(readFileSync(join(folder.dir, shot!.key)).subarray(1, 4).toString()).toBe('PNG');
    const first = browserPid();
    const { command } = listProcesses().find(({ pid }) => pid === first)!;
    expect(command).toContain('--no-sandbox');
    // Unpacked with the image, not by the environment.
    expect(command).toContain('/chromium/chromium ');
    expect(await outcomesOf(browserBatch(2, ['/2']))).toMatchObject([{ kind: 'fetched' }]);
    expect(browserPid()).toBe(first);
  });

  test('answers before it is killed: pages that are done, and the rest as deferred', async () => {
    const [done, slow] = await outcomesOf(browserBatch(3, ['/3', '/slow']));
    expect(done).toMatchObject({ kind: 'fetched', trace: { shots: [{ kind: 'screenshot' }] } });
    expect(slow).toMatchObject({ kind: 'deferred' });
  });

  test('that is killed loses its batch and its browser, and the next call has new ones', async () => {
    const [before, environment] = [browserPid(), environmentPid()];
    site.paths.length = 0;
    const lost = deliver(dispatcher, browserBatch(4, ['/slow']));
    await expect.poll(() => site.paths).toContain('/slow');
    process.kill(environment, 'SIGKILL');
    expect((await lost).delivery).toMatchObject({ kind: 'lost' });
    await expect.poll(() => isAlive(before)).toBe(false);
    expect(await outcomesOf(browserBatch(5, ['/5']))).toMatchObject([{ kind: 'fetched' }]);
    expect(environmentPid()).not.toBe(environment);
  });

  test('leaves no browser behind when its environment is ended', async () => {
    const last = browserPid();
    const profile = /--user-data-dir=(\S+)\/profile/.exec(groupOf(last)[0]!.command)![1]!;
    expect(existsSync(profile)).toBe(true);
    await setup.close();
    await expect.poll(() => isAlive(last) || existsSync(profile)).toBe(false);
  });
});
