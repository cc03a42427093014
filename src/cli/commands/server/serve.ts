import { statSync } from 'node:fs';
import { openFolder } from '../../../app/folder.ts';
import type { JobSummary } from '../../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import { Server } from '../../../server/server.ts';
import { formatCount } from '../../../tui/format.ts';
import { type Context, print, printJson } from '../../context.ts';
import { toListenAddress } from '../../listen-address.ts';
import { watchSignals } from '../run/watch-signals.ts';

const LISTEN = '127.0.0.1:7420';

/** Runs all jobs of the folder until a signal comes. */
export async function serveCommand(context: Context): Promise<ExitName> {
  const { values, args } = context.parsed;
  const listen = toListenAddress(values.listen ?? LISTEN);
  const jobsFolder = values.jobs ?? null;
  if (jobsFolder !== null && !statSync(jobsFolder, { throwIfNoEntry: false })?.isDirectory())
    throw new SeineError(`--jobs is not a folder: ${jobsFolder}`);
  for (const path of args)
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) throw new SeineError(`no such file: ${path}`);
  const folder = await openFolder(context.settings, { create: true, toWork: true });
  const signals = watchSignals({ secondExits: true });
  try {
    // Its address is in the folder: two of them would overwrite and remove each other's.
    const lock = folder.lock({ alone: true });
    try {
      const server = await Server.open(folder, {
        listen,
        jobFiles: args,
        jobsFolder,
        settings: context.settings,
        allowPrivate: values['allow-private'] !== undefined,
        adminKey: context.loaded.config.adminKey,
        webhooksAllowPrivate: context.loaded.config.webhooksAllowPrivate,
        alerts: alertsOf(context),
        onEnd: (summary) => tell(context, summary),
      });
      if (context.json) printJson(context, { listening: server.url });
      else print(context.stdout, `listening on ${server.url}\n`);
      try {
        await Promise.race([server.run(), signals.first]);
      } finally {
        await server.close();
      }
    } finally {
      lock.release();
    }
  } finally {
    signals.close();
    await folder.close();
  }
  return 'interrupted';
}

function alertsOf({ loaded }: Context) {
  const { alerts, alertSlackUrl, alertCommand, alertMail } = loaded.config;
  const targets = { slackUrl: alertSlackUrl, command: alertCommand, mail: alertMail };
  return { thresholds: alerts, targets };
}

function tell(context: Context, summary: JobSummary): void {
  if (context.json) {
    printJson(context, summary);
    return;
  }
  const { id, state, reason, done, unchanged, dead, records } = summary;
  const pages = formatCount(done + unchanged);
  const why = reason === null ? '' : `: ${reason}`;
  const counts = `${pages} pages, ${formatCount(records)} records, ${formatCount(dead)} dead letters`;
  print(context.stdout, `${new Date().toISOString()} ${id} is ${state}${why} (${counts})\n`);
}
