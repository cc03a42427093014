/** Cold starts of functions in the emulator of Lambda, with the share of a core that their memory has there. */
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strToU8, zipSync } from 'fflate';
import { loadLambda } from '../../src/aws/lambda/lambda-client.ts';
import { type Batch, WIRE_VERSION } from '../../src/core/batch/batch.ts';
import { findChromium } from '../../src/fetch/browser/process/find-chromium.ts';
import type { EmulatorOptions, LambdaEmulator } from '../../src/lambda-emulator/emulator.ts';
import type { LambdaAnswer, LambdaEvent } from '../../src/transport/lambda/wire.ts';
import { specOf } from '../../test/support/fixtures.ts';
import { ROOT_FOLDER } from '../contenders/contender.ts';
import { MB_PER_CORE, openCpuShare } from '../cpu-share.ts';
import { treeCpuSeconds } from '../meter.ts';
import type { Scratch } from '../scratch.ts';
import type { FirstRequest, Start } from './commands.ts';

/** What `seine lambda deploy` gives its functions. */
const HTTP_MB = 1_024;
const BROWSER_MB = 2_048;
const TIMEOUT_SECONDS = 60;
const NAME = 'seine';

/** Does nothing: what Node and the loop of the emulator take by themselves. */
const BARE = "export const handler = async () => ({ kind: 'here' });";

interface ColdFunction {
  /** Starts an environment for one event, and ends it. */
  start(): Promise<Start>;
  close(): Promise<void>;
}

interface Opened {
  emulator: LambdaEmulator;
  /** The answer, how long the environment took to start, and then to answer. */
  invoke(event: LambdaEvent): Promise<{ answer: LambdaAnswer; initMs: number; durationMs: number }>;
  /** Ends the environment, and waits until it is gone. */
  end(): Promise<void>;
  close(): Promise<void>;
}

/** As it is built: from its sources, the loop of an environment would be compiled by Node at each start. */
async function fromBuild<T>(path: string): Promise<T> {
  return (await import(join(ROOT_FOLDER, 'dist', path))) as T;
}

async function open(scratch: Scratch, memoryMb: number, options: EmulatorOptions): Promise<Opened> {
  const share = openCpuShare(memoryMb / MB_PER_CORE);
  if (share === null) throw new Error('needs root, and cgroups with the controller of CPU');
  const { startLambdaEmulator } = await fromBuild<typeof import('../../src/lambda-emulator/emulator.ts')>(
    'lambda-emulator/emulator.js',
  );
  const emulator = await startLambdaEmulator({
    ...{ name: NAME, memoryMb, timeoutSeconds: TIMEOUT_SECONDS, concurrency: 1 },
    ...options,
    onStart: (pid) => share.add(pid),
  });
  const place = { endpoint: emulator.url, region: null, credentials: emulator.credentialsFile };
  const { sdk, client } = await loadLambda(place, { sockets: 1 });
  const end = async () => {
    for (const pid of emulator.pidsOf(NAME)) process.kill(pid, 'SIGKILL');
    while (emulator.pidsOf(NAME).length > 0) await sleep(5);
  };
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= end()
      .then(() => emulator.close())
      .then(() => share.close());
    client.destroy();
    return closing;
  };
  // Also after Ctrl-C.
  scratch.onEnd(close);
  return {
    emulator,
    end,
    async invoke(event) {
      const Payload = Buffer.from(JSON.stringify(event));
      const reply = await client.send(
        new sdk.InvokeCommand({ FunctionName: NAME, LogType: 'Tail', Payload }),
      );
      const log = Buffer.from(reply.LogResult ?? '', 'base64').toString();
      const answer: LambdaAnswer = JSON.parse(Buffer.from(reply.Payload ?? []).toString());
      if (reply.FunctionError !== undefined) throw new Error(JSON.stringify(answer));
      const numberAfter = (words: string) => Number(new RegExp(`\t${words}: ([\\d.]+) ms`).exec(log)?.[1]);
      return { answer, initMs: numberAfter('Init Duration'), durationMs: numberAfter('Duration') };
    },
    close,
  };
}

/** `bare`: a function without code in the place of ours. */
export async function openHttpFunction(scratch: Scratch, { bare }: { bare: boolean }): Promise<ColdFunction> {
  const { buildLambdaZip } =
    await fromBuild<typeof import('../../src/cli/lambda/build-zip.ts')>('cli/lambda/build-zip.js');
  const zip = bare ? zipSync({ 'index.mjs': strToU8(BARE) }) : (await buildLambdaZip()).bytes;
  const opened = await open(scratch, HTTP_MB, { zip });
  return {
    async start() {
      const { initMs } = await opened.invoke({ kind: 'warm', waitMs: 0 });
      const cpuMs = treeCpuSeconds(opened.emulator.pidsOf(NAME)[0]!) * 1_000;
      await opened.end();
      return { ms: initMs, cpuMs };
    },
    close: opened.close,
  };
}

/** The image, whose environments have a `/tmp` of their own. */
export async function openBrowserFunction(scratch: Scratch, url: string): Promise<ColdFunction> {
  const folder = scratch.diskFolder('image');
  const [image, tmp, blobs] = ['image', 'tmp', 'blobs'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const { buildLambdaImage } =
    await fromBuild<typeof import('../../src/cli/lambda/build-image.ts')>('cli/lambda/build-image.js');
  await buildLambdaImage(image);
  const opened = await open(scratch, BROWSER_MB, { image, variables: { TMPDIR: tmp, SEINE_BLOBS: blobs } });
  let batches = 0;
  return {
    async start() {
      rmSync(tmp, { recursive: true, force: true });
      mkdirSync(tmp);
      const batch = batchOf(url, ++batches);
      const event: LambdaEvent = {
        ...{ kind: 'batch', version: WIRE_VERSION, clockOffsetMs: 0 },
        batch: { plain: batch },
        drainKey: `drain/${batch.id}`,
      };
      const { answer, initMs, durationMs } = await opened.invoke(event);
      const cpuMs = treeCpuSeconds(opened.emulator.pidsOf(NAME)[0]!) * 1_000;
      await opened.end();
      checkAnswer(answer);
      return { ms: initMs + durationMs, cpuMs };
    },
    async close() {
      await opened.close();
      scratch.remove(folder);
    },
  };
}

/** One page, by the browser, without a picture of it. */
function batchOf(url: string, id: number): Batch {
  const route = { name: 'p', fetcher: 'browser', select: { title: 'title' } } as const;
  const spec = specOf({ allowPrivate: true, retry: { attempts: 1 }, routes: [route] });
  const startAt = Date.now();
  const fetchMethod = { level: 0, fetcher: 'browser', headers: 'full', identity: null, pool: null } as const;
  return {
    version: WIRE_VERSION,
    id,
    job: { id: 1, name: 'starts', specHash: 'starts', spec, bundle: null, epoch: 'e1' },
    needs: 'browser',
    budgetMs: TIMEOUT_SECONDS * 1_000,
    permits: [{ host: new URL(url).host, startAt, endAt: startAt + 60_000, gapMs: 0, parallel: 1 }],
    robots: [],
    tasks: [
      {
        ...{ id, url, permit: 0, depth: 0, route: 'p', attempt: 1, hops: 0, meta: null, lastVisit: null },
        fetchMethod,
      },
    ],
    archiveKey: `warc/starts-1/${id}`,
    packKey: `shards/starts-1/${id}`,
  };
}

/** A page that was not shown has no time. */
function checkAnswer(answer: LambdaAnswer): void {
  const reports =
    answer.kind === 'parts' ? answer.parts.map((part) => ('plain' in part ? part.plain : null)) : [];
  const title = reports.flatMap((report) => report?.outcomes ?? [])[0];
  if (title?.kind !== 'fetched' || !title.records[0]?.json.includes('a page'))
    throw new Error(`the page was not shown: ${JSON.stringify(answer).slice(0, 600)}`);
}

/** Chromium by itself, unpacked before, with the same share of a core: until the page that it is given says it is shown. */
export async function openBareChromium(scratch: Scratch, site: FirstRequest): Promise<ColdFunction> {
  const share = openCpuShare(BROWSER_MB / MB_PER_CORE);
  if (share === null) throw new Error('needs root, and cgroups with the controller of CPU');
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= share.close();
    return closing;
  };
  scratch.onEnd(close);
  const { path, environment } = await findChromium('bundled');
  return {
    async start() {
      const cwd = scratch.diskFolder('chromium');
      const startedAt = performance.now();
      const flags = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${cwd}`];
      const child = scratch.spawn(path, [...flags, site.url], {
        ...{ cwd, env: { ...process.env, ...environment } },
        stdio: 'ignore',
      });
      share.add(child.pid!);
      const exited = once(child, 'close');
      const shown = site.shown(() => treeCpuSeconds(child.pid!));
      const found = await Promise.race([shown, exited.then(() => null)]);
      if (found === null) throw new Error('Chromium ended without showing the page');
      // With all its processes.
      process.kill(-child.pid!, 'SIGKILL');
      await exited;
      scratch.remove(cwd);
      return { ms: found.at - startedAt, cpuMs: found.seen * 1_000 };
    },
    close,
  };
}
