import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkSources, openJobAccess, startRun } from '../../../app/app.ts';
import { type Folder, openFolder } from '../../../app/folder.ts';
import { findQuote } from '../../../coordinator/forecast/quote.ts';
import { type ExitName, messageOf, SeineError } from '../../../core/errors.ts';
import type { Forecast } from '../../../core/forecast/forecast.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import { storeCode } from '../../../job-file/load-job-file.ts';
import type { Job } from '../../../ports/store.ts';
import { forecastText } from '../../../tui/money.ts';
import { forecastJob, SAMPLE_DEFAULT } from '../../../tune/forecast.ts';
import { type Context, print, printable, printJson } from '../../context.ts';
import { serverOf } from '../../folder-server.ts';
import { runServed } from './follow-served.ts';
import { jobFromCommandLine } from './job-from-flags.ts';
import { watchSignals } from './watch-signals.ts';

/** More is a run. */
const SAMPLE_MAX = 10_000;

export async function forecastCommand(context: Context): Promise<ExitName> {
  const sample = sampleOf(context.parsed.values.sample);
  const loaded = await jobFromCommandLine(context);
  const { spec } = loaded;
  await openJobAccess(spec, context.settings);
  const folder = await openFolder(context.settings, { create: true, toWork: true });
  try {
    await checkSources(spec.sources, context.settings, folder.store, spec);
    const code = await storeCode(folder.blobs, loaded);
    const run = (job: Job) => runSample(context, folder, job, sample ?? SAMPLE_DEFAULT);
    const tools = { folder, settings: context.settings, run, now: Date.now };
    const forecast = await forecastJob(tools, code, { sample });
    if (context.json) printJson(context, forecast);
    else print(context.stdout, `${printable(spec.name)}, ${forecastText(forecast)}\n`);
    return 'success';
  } finally {
    await folder.close();
  }
}

function sampleOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (/^\d+$/.test(text) && value <= SAMPLE_MAX) return value;
  throw new SeineError(`--sample needs a whole number up to ${SAMPLE_MAX}, got '${text}'`);
}

/** Here, or by the server that owns the folder: it has the rates of all jobs in its hands. */
async function runSample(context: Context, folder: Folder, job: Job, sample: number): Promise<void> {
  if (!context.json) print(context.stderr, `requesting up to ${sample} pages as a sample\n`);
  const server = await serverOf(folder);
  const signals = watchSignals({ secondExits: true });
  try {
    if (server) {
      await runServed(folder, server, job, signals);
    } else {
      const run = await startRun(folder, folder.lock(), job, context.settings);
      void signals.first.then(() =>
        run.stop({ state: 'stopped', cause: 'signal', message: 'stopped by a signal' }),
      );
      await run.result;
    }
    if (signals.came) throw new SeineError('the sample was stopped', { exit: 'interrupted' });
  } finally {
    signals.close();
  }
}

/** What a dry run can say: it sends nothing, and writes nothing where the job would run. */
export async function dryForecast(context: Context, spec: JobSpec): Promise<Forecast | null> {
  const { settings } = context;
  const temporary = await mkdtemp(join(tmpdir(), 'seine-dry-run-'));
  try {
    const folder =
      (await openFolder(settings, { create: false }).catch(() => null)) ??
      (await openFolder({ ...settings, dir: temporary, store: null }, { create: true }));
    try {
      const quote = await findQuote(folder.store, spec, Date.now());
      const tools = { folder, settings, run: async () => {}, now: Date.now };
      const code = { spec, specHash: '', bundle: null, file: null };
      return quote ?? (await forecastJob(tools, code, { sample: 0 }));
    } finally {
      await folder.close();
    }
  } catch (error) {
    // A query that needs a store, for example: the job itself is checked all the same.
    settings.logger.info(`no forecast: ${messageOf(error)}`);
    return null;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
