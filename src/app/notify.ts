import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { withEnvironment } from '../config/load.ts';
import type { JobSummary } from '../coordinator/jobs.ts';
import type { ReadSecret } from '../coordinator/proxies/job-access.ts';
import { messageOf } from '../core/errors.ts';
import type { Notifier } from '../core/job-schema/notify.ts';
import { problemsOf } from '../core/record-changes/run-problems.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { loadJobFile } from '../job-file/load-job-file.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Job } from '../ports/store.ts';
import { changesText } from '../tui/changes.ts';
import { formatAmount } from '../tui/format.ts';

/** Somebody waits for the end of the run: an endpoint or a command that hangs is given up. */
const ANSWER_MS = 15_000;
const COMMAND_MS = 60_000;
const TRIES = 3;

interface NotifyTools {
  /** What code of jobs sees of the environment. */
  jobEnvironment: Record<string, string>;
  readSecret?: ReadSecret;
  logger: Logger;
}

/** Tells those whom the job names that its run has ended. Never rejects: what fails is a warning. */
export async function notifyEnd(job: Job, summary: JobSummary, tools: NotifyTools): Promise<void> {
  const { readSecret, logger } = tools;
  if (!job.spec.notify || job.owner !== null) return;
  const message = messageFor(summary);
  const isFailure = message.problems.length > 0 || summary.state === 'tripped';
  const { created = 0, changed = 0 } = summary.changes ?? {};
  const isChange = isFailure || created + changed > 0;
  const wanted = { always: true, change: isChange, failure: isFailure };
  for (const notifier of await notifiersOf(job, tools)) {
    if (!wanted[notifier.when]) continue;
    try {
      if (notifier.command)
        await runWithMessage(notifier.command, message, job.file === null ? null : dirname(job.file));
      else await postMessage(await urlOf(notifier, readSecret), message);
    } catch (error) {
      const name = notifier.command?.[0] ?? 'the URL of notify';
      logger.warn(`could not notify ${name}: ${hideCredentials(messageOf(error))}`);
    }
  }
}

/** In one line for people, with all figures for programs. */
function messageFor(summary: JobSummary) {
  const { id, state, dead, changes, records } = summary;
  const problems = problemsOf(summary);
  const drops = summary.quality.flatMap((route) => route.drops.map(({ field }) => field ?? 'valid pages'));
  const parts = [
    changes ? changesText(changes) : formatAmount(records, 'record'),
    ...(dead > 0 ? [formatAmount(dead, 'dead letter')] : []),
    ...(drops.length > 0 ? [`filled less often: ${drops.join(', ')}`] : []),
  ];
  return { text: `${id} is ${state}: ${parts.join('; ')}`, problems, summary };
}

/**
 * Commands are taken from the job file alone, as it is now: a database that others can write to must not say what runs
 * on this machine.
 */
async function notifiersOf(job: Job, { logger, jobEnvironment }: NotifyTools): Promise<Notifier[]> {
  const stored = (job.spec.notify ?? []).filter(({ command }) => !command);
  if (job.file === null || stored.length === job.spec.notify?.length) return stored;
  try {
    const { file } = job;
    return (await loadJobFile(file, withEnvironment(jobEnvironment))).spec.notify ?? [];
  } catch (error) {
    logger.warn(`commands of notify did not run: ${messageOf(error)}`);
    return stored;
  }
}

async function urlOf({ url }: Notifier, readSecret: ReadSecret | undefined): Promise<string> {
  if (typeof url === 'string') return url;
  if (!readSecret) throw new Error('secrets are not available here');
  return (await readSecret(url!, 'anywhere')).trim();
}

/** To a server that takes JSON, such as a chat. */
export async function postMessage(url: string, message: object): Promise<void> {
  const body = JSON.stringify(message);
  for (let attempt = 1; ; attempt++) {
    try {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(url, {
        method: 'POST',
        headers,
        body,
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      await response.body?.cancel();
      if (response.ok) return;
      throw new Error(`status ${response.status}`);
    } catch (error) {
      if (attempt >= TRIES) throw error;
    }
  }
}

/** Runs a program with the message as JSON on its standard input. */
export async function runWithMessage(
  [program, ...args]: readonly string[],
  message: object,
  cwd: string | null,
): Promise<void> {
  const child = spawn(program!, args, {
    stdio: ['pipe', 'ignore', 'inherit'],
    timeout: COMMAND_MS,
    ...(cwd === null ? {} : { cwd }),
  });
  // A command that reads nothing closes its input early.
  child.stdin.on('error', () => {});
  child.stdin.end(`${JSON.stringify(message)}\n`);
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) =>
      code === 0 ? resolve() : reject(new Error(`it ended with ${signal ?? `code ${code}`}`)),
    );
  });
}
