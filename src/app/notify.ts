import { spawn } from 'node:child_process';
import { dirname, extname, resolve } from 'node:path';
import { withEnvironment } from '../config/load.ts';
import type { JobSummary } from '../coordinator/jobs.ts';
import type { ReadSecret } from '../coordinator/proxies/job-access.ts';
import { messageOf, SeineError } from '../core/errors.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import type { Notifier } from '../core/job-schema/notify.ts';
import { problemsOf } from '../core/record-changes/run-problems.ts';
import { hideCredentials } from '../core/text/redact.ts';
import { isPublicAddress } from '../core/url/address.ts';
import { type AddressCheck, makeAddressGuard } from '../core/url/address-guard.ts';
import { loadJobFile } from '../job-file/load-job-file.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Job } from '../ports/store.ts';
import { changesText } from '../tui/changes.ts';
import { formatAmount } from '../tui/format.ts';

/** Somebody waits for the end of the run: an endpoint or a command that hangs is given up. */
const ANSWER_MS = 15_000;
const CONNECT_MS = 10_000;
const COMMAND_MS = 60_000;
const TRIES = 3;

interface NotifyTools extends CommandRules {
  /** What code of jobs sees of the environment, and what their commands get. */
  jobEnvironment: Record<string, string>;
  readSecret?: ReadSecret;
  logger: Logger;
}

/** Tells those whom the job names that its run has ended. Never rejects: what fails is a warning. */
export async function notifyEnd(job: Job, summary: JobSummary, tools: NotifyTools): Promise<void> {
  const { readSecret, logger, jobEnvironment, allowPrivate } = tools;
  if (!job.spec.notify || job.owner !== null) return;
  const message = messageFor(summary);
  const isFailure = message.problems.length > 0 || summary.state === 'tripped';
  const { created = 0, changed = 0 } = summary.changes ?? {};
  const isChange = isFailure || created + changed > 0;
  const guard = makeAddressGuard(isPublicAddress, allowPrivate === 'never');
  const isAllowed = guard.services(job.spec.privateServices);
  const wanted = { always: true, change: isChange, failure: isFailure };
  for (const notifier of await notifiersOf(job, tools)) {
    if (!wanted[notifier.when]) continue;
    try {
      if (notifier.command) {
        checkCommands({ file: job.file, spec: { notify: [notifier] } }, tools);
        const cwd = job.file === null ? null : dirname(job.file);
        await runWithMessage(notifier.command, message, { cwd, env: jobEnvironment });
      } else await postMessage(await urlOf(notifier, readSecret), message, isAllowed);
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

interface CommandRules {
  /** Programs that jobs without code may run; absent where the operator has not said it. */
  jobCommands?: readonly string[] | undefined;
  allowPrivate?: 'job' | 'never';
}

/**
 * Throws where a job names a program that it may not run. An operator who lists programs, or refuses private addresses
 * whatever a job says, does not trust those who write YAML and JSON; TypeScript and JavaScript run here anyway.
 */
export function checkCommands(
  { file, spec }: { file: string | null; spec: Pick<JobSpec, 'notify'> },
  { jobCommands, allowPrivate }: CommandRules,
): void {
  if (file === null || !/^\.(?:ya?ml|json)$/i.test(extname(file))) return;
  if (jobCommands === undefined && allowPrivate !== 'never') return;
  const named = (program: string, dir: string) => (program.includes('/') ? resolve(dir, program) : program);
  const listed = new Set(jobCommands?.map((program) => named(program, '.')));
  for (const { command } of spec.notify ?? []) {
    const program = command && named(command[0]!, dirname(file));
    if (program === undefined || listed.has(program)) continue;
    throw new SeineError(`the job runs ${command![0]}, which is not listed in SEINE_JOB_COMMANDS`, {
      hint: `if the job may run it, set SEINE_JOB_COMMANDS=${[...(jobCommands ?? []), program].join(',')}`,
    });
  }
}

async function urlOf({ url }: Notifier, readSecret: ReadSecret | undefined): Promise<string> {
  if (typeof url === 'string') return url;
  if (!readSecret) throw new Error('secrets are not available here');
  return (await readSecret(url!, 'anywhere')).trim();
}

/** To a server that takes JSON, such as a chat. Redirects are not followed: the message is for this server. */
export async function postMessage(url: string, message: object, isAllowed: AddressCheck): Promise<void> {
  const [{ request }, { openGuardedConnections }] = await Promise.all([
    import('undici'),
    import('../network/guarded-connections.ts'),
  ]);
  const connections = openGuardedConnections({
    isAllowed,
    refused: (hostname) => new Error(`${hostname} has a private or reserved address, which is refused`),
    connectMs: CONNECT_MS,
  });
  const body = JSON.stringify(message);
  const headers = { 'content-type': 'application/json' };
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        const signal = AbortSignal.timeout(ANSWER_MS);
        const answer = await request(url, {
          ...{ method: 'POST', headers, body, signal, dispatcher: connections },
        });
        answer.body.on('error', () => {}).destroy();
        if (answer.statusCode >= 200 && answer.statusCode < 300) return;
        throw new Error(`status ${answer.statusCode}`);
      } catch (error) {
        if (attempt >= TRIES) throw error;
      }
    }
  } finally {
    await connections.destroy();
  }
}

/** Runs a program with the message as JSON on its standard input. `env`: instead of that of this process. */
export async function runWithMessage(
  [program, ...args]: readonly string[],
  message: object,
  { cwd = null, env }: { cwd?: string | null; env?: Record<string, string> } = {},
): Promise<void> {
  const child = spawn(program!, args, {
    stdio: ['pipe', 'ignore', 'inherit'],
    timeout: COMMAND_MS,
    ...(cwd === null ? {} : { cwd }),
    ...(env ? { env } : {}),
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
