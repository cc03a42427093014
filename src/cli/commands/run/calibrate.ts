import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openAddedSources } from '../../../app/app.ts';
import { type Folder, openFolder } from '../../../app/folder.ts';
import { openWorkerTools } from '../../../app/worker-app.ts';
import { type HostProfile, paceOfProfile, replacesProfile } from '../../../core/calibration/host-profile.ts';
import { drawProfile } from '../../../core/calibration/picture.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { PRIVATE_FOLDER } from '../../../core/file-modes.ts';
import { calibrationEntry, textOf } from '../../../core/host-log/host-log.ts';
import type { JobSpec } from '../../../core/job-schema/job.ts';
import { normalizeUrl } from '../../../core/url/url.ts';
import { completeSpec } from '../../../job-file/parse-job.ts';
import type { HostLogText, Job } from '../../../ports/store.ts';
import { formatAmount, formatCount } from '../../../tui/format.ts';
import { type CalibrationProgress, calibrate } from '../../../tune/calibrate.ts';
import { systemClock } from '../../../worker/batch/system-clock.ts';
import { compileJob } from '../../../worker/compile-job.ts';
import { type Command, type Context, print, printJson } from '../../context.ts';
import { serverOf } from '../../folder-server.ts';
import { jobFromCommandLine, toNumber } from './job-from-flags.ts';
import { watchSignals } from './watch-signals.ts';

/** More pages of a host would not make it answer differently. */
const URLS_PER_HOST = 200;
const HOSTS_MAX = 5;
const ROWS_MAX = 20_000;
const REFUSALS_MAX = 20;
/** Those that were noted last: each takes minutes. */
const PROFILES_MAX = 10_000;

/** Finds out which rate the hosts of a job take. */
export const calibrateCommand: Command = async (context) => {
  const folder = await openFolder(context.settings, { create: true, toWork: true });
  try {
    const server = await serverOf(folder);
    if (server)
      throw new SeineError('a server runs in this folder', {
        hint: 'stop it while hosts are calibrated: its requests would count, too',
      });
    const spec = await specOf(context, folder);
    if (spec.proxies)
      throw new SeineError('jobs with proxies cannot be calibrated', {
        hint: 'a host limits each proxy by itself; calibrate it without them',
      });
    const lock = folder.lock();
    const signals = watchSignals({ secondExits: true });
    const stop = new AbortController();
    void signals.first.then(() => stop.abort());
    try {
      return await calibrateHosts(context, folder, spec, stop.signal);
    } finally {
      signals.close();
      lock.release();
    }
  } finally {
    await folder.close();
  }
};

async function calibrateHosts(
  context: Context,
  folder: Folder,
  spec: JobSpec,
  signal: AbortSignal,
): Promise<ExitName> {
  const { values } = context.parsed;
  const requestsMax =
    values['max-requests'] === undefined ? null : toNumber('--max-requests', values['max-requests']);
  const refusalsMax =
    values['max-refusals'] === undefined ? REFUSALS_MAX : toNumber('--max-refusals', values['max-refusals']);
  const hosts = await hostsOf(context, folder, spec);
  const { settings } = context;
  const tools = await openWorkerTools({
    ...{ name: 'calibrate', blobs: folder.blobsPlace, sync: false },
    ...{ s3: settings.s3, allowPrivate: settings.allowPrivate },
    ...{ browser: settings.browser, apiCallbacks: settings.apiCallbacks, logger: settings.logger },
  });
  try {
    const { headers } = await compileJob({ ...spec, routes: [], follow: [] }, new Map());
    let failed = false;
    for (const [host, urls] of hosts) {
      const [known] = await folder.store.frontier.hostsNamed([host]);
      const profile = await calibrate({
        ...{ pace: known?.pace ?? null },
        ...{ host, urls, spec, headers, signal, requestsMax, refusalsMax },
        fetcher: tools.fetcher,
        clock: systemClock,
        onProgress: progressLines(context),
      });
      const earlier = await profileOfHost(folder, host);
      const isKept = replacesProfile(profile, earlier, profile.measuredAt);
      if (isKept) await folder.store.hosts.saveProfile(profile, paceOfProfile(profile));
      if (spec.politeness.log) await folder.store.hosts.appendLogs([logOf(profile)]);
      const picture = writePicture(folder, profile);
      show(context, profile, { picture, usedInstead: isKept ? null : earlier });
      failed ||= profile.rate === null;
    }
    return failed ? 'breaker' : 'success';
  } finally {
    await tools.close();
  }
}

async function profileOfHost(folder: Folder, host: string): Promise<HostProfile | null> {
  const profiles = await folder.store.hosts.profiles(PROFILES_MAX);
  return profiles.find((profile) => profile.host === host) ?? null;
}

/** Its requests are in the log of the host, too. */
function logOf({ host, requests, refusals }: HostProfile): HostLogText {
  return { host, text: textOf(calibrationEntry({ now: systemClock.now(), host, requests, refusals })) };
}

/** A job of the folder, a job file or list as for `run`, or the name of a host. */
async function specOf(context: Context, folder: Folder): Promise<JobSpec> {
  const [first, ...more] = context.parsed.args;
  if (first === undefined)
    throw new SeineError('nothing to calibrate', {
      hint: 'pass a job, a list of URLs, or a host; see `seine calibrate --help`',
    });
  if (more.length === 0 && /^[\w.-]+(:\d+)?$/.test(first)) {
    const job = await folder.store.jobs.find(first);
    if (job) return completeSpec(job.spec);
    if (isHostName(first)) {
      const scheme = /^(\d+\.|localhost)|:\d+$/.test(first) ? 'http' : 'https';
      context.parsed.args[0] = `${scheme}://${first}/`;
    }
  }
  return (await jobFromCommandLine(context)).spec;
}

/** Job files and lists have endings too, but those are no domains that hosts have. */
function isHostName(text: string): boolean {
  if (/\.(txt|csv|tsv|jsonl|json|ya?ml|ts|js|mjs|parquet|gz|xml)$/i.test(text)) return false;
  return text.includes('.') || text.includes(':') || text === 'localhost';
}

/** Pages by host, hosts with the most pages first. */
async function hostsOf(context: Context, folder: Folder, spec: JobSpec): Promise<[string, string[]][]> {
  const job = { id: 0, name: spec.name, run: 0, pass: 0, spec } as Job;
  const spool = join(folder.dir, 'inputs', `calibrate-${process.pid}`);
  const { sources, close } = openAddedSources(folder, job, spool, context.settings);
  const hosts = new Map<string, string[]>();
  let rows = 0;
  try {
    for (const source of sources)
      for await (const { row } of source.rows(null)) {
        if (++rows > ROWS_MAX) break;
        const found = 'url' in row ? normalizeUrl(row.url, null, spec.url) : null;
        if (!found) continue;
        const urls = hosts.get(found.host) ?? [];
        if (urls.length < URLS_PER_HOST) urls.push(found.url);
        hosts.set(found.host, urls);
      }
  } finally {
    await close();
  }
  if (hosts.size === 0) throw new SeineError('there are no URLs to calibrate with');
  const sorted = [...hosts].sort(([, a], [, b]) => b.length - a.length);
  if (sorted.length > HOSTS_MAX && !context.json)
    print(
      context.stderr,
      `calibrating ${HOSTS_MAX} of ${formatCount(sorted.length)} hosts, those with the most URLs\n`,
    );
  return sorted.slice(0, HOSTS_MAX);
}

/** Outside of a terminal: a line for each rate that is tried, and a sign of life now and then. */
const LINES_MS = 30_000;

function progressLines({ json, stderr }: Context): (progress: CalibrationProgress) => void {
  let written = '';
  let writtenAt = 0;
  return ({ host, purpose, rate, requests, refusals, isProbing }) => {
    if (json) return;
    const doing = isProbing ? 'waits until the host answers again' : `${WORDS[purpose]} ${shortRate(rate)}/s`;
    const line = `${host}: ${doing}, ${formatAmount(requests, 'request')}, ${formatAmount(refusals, 'refusal')}`;
    if (stderr.isTTY) stderr.write(`\r\u001b[2K${line}`);
    else if (doing !== written || systemClock.now() - writtenAt >= LINES_MS) {
      print(stderr, `${line}\n`);
      written = doing;
      writtenAt = systemClock.now();
    }
  };
}

const WORDS = {
  climb: 'trying',
  repeat: 'trying again',
  control: 'checking',
  bisect: 'narrowing down at',
  hold: 'holding',
} as const;

const ENDS: Readonly<Record<HostProfile['end'], string>> = {
  held: 'it held',
  cap: 'it held; more is not allowed by the job or robots.txt',
  'own-limit': 'more could not be sent from here: raise --parallel to try more',
  blocked: 'the host answered with 403 or a challenge: stopped at once',
  refusals: 'as many refusals as allowed',
  requests: 'as many requests as allowed',
  unreachable: 'the host stopped answering',
};

/** It ended before the highest rate was found. */
function isGuess({ end }: HostProfile): boolean {
  return end === 'refusals' || end === 'requests';
}

function show(
  context: Context,
  profile: HostProfile,
  { picture, usedInstead }: { picture: string; usedInstead: HostProfile | null },
): void {
  const { host, rate, parallel, batchSize, timeoutMs, batchTimeoutMs, requests, refusals, evidence } =
    profile;
  if (context.json) {
    printJson(context, {
      ...{ host, rate, parallel, batchSize, timeoutMs, batchTimeoutMs, requests, refusals },
      ...{ end: profile.end, windowMs: profile.windowMs, picture },
      expiresAt: new Date(profile.expiresAt).toISOString(),
      evidence,
    });
    return;
  }
  if (context.stderr.isTTY) context.stderr.write('\r\u001b[2K');
  const lines = [
    `${host}: ${rate === null ? 'no rate held' : `${shortRate(rate)} requests per second`} (${ENDS[profile.end]}${rate !== null && isGuess(profile) ? ': a cautious guess' : ''})`,
    `  ${formatAmount(requests, 'request')}, ${formatAmount(refusals, 'refusal')}${profile.windowMs > 0 ? `, counted over ${Math.round(profile.windowMs / 1_000)} s` : ''}`,
    `  parallel ${parallel}, batch size ${batchSize}${timeoutMs === null ? '' : `, timeout of a task ${timeoutMs} ms, of a batch or function ${batchTimeoutMs} ms`}`,
    rate === null
      ? `  ${usedInstead === null ? 'later runs use nothing of it' : `later runs go on with ${shortRate(usedInstead.rate ?? 0)}/s, measured ${new Date(usedInstead.measuredAt).toISOString()}`}; picture: ${picture}`
      : `  used by later runs until ${new Date(profile.expiresAt).toISOString()}; picture: ${picture}`,
  ];
  print(context.stdout, `${lines.join('\n')}\n`);
}

function writePicture(folder: Folder, profile: HostProfile): string {
  const dir = join(folder.dir, 'calibration');
  mkdirSync(dir, { recursive: true, mode: PRIVATE_FOLDER });
  const path = join(dir, `${profile.host.replace(/[^\w.-]/g, '_')}.svg`);
  writeFileSync(path, drawProfile(profile));
  return path;
}

function shortRate(rate: number): string {
  return String(Number(rate.toPrecision(3)));
}
