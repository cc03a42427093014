import { AWS_ITSELF } from '../../aws/s3/s3-client.ts';
import { requireJob } from '../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../core/errors.ts';
import { VERSION } from '../../core/identity/identity.ts';
import { isHtml } from '../../core/media/media-type.ts';
import type { Blobs } from '../../ports/blobs.ts';
import type { Job, Store } from '../../ports/store.ts';
import { formatAmount } from '../../tui/format.ts';
import { type Context, print, printJson, withFolder } from '../context.ts';
import { isStandardOutput, openDestination } from './destination.ts';
import { SortedLines } from './sorted-lines.ts';
import { type WaczPage, type WarcFile, writeWacz } from './write-wacz.ts';

/** `seine export --what wacz -o site.wacz`: the archive of a run in one file that replay tools open. */
export async function exportWacz(context: Context): Promise<ExitName> {
  const { output, format } = context.parsed.values;
  if (format !== undefined) throw new SeineError('--format does not work with --what wacz');
  if (isStandardOutput(output) && context.stdout.isTTY)
    throw new SeineError('a WACZ file cannot be written to a terminal', {
      hint: 'use -o site.wacz, or a pipe',
    });
  if (output?.endsWith('.gz'))
    throw new SeineError('WACZ files are already compressed', { hint: 'use a file name without .gz' });
  return withFolder(context, async (folder): Promise<ExitName> => {
    const job = await requireJob(folder.store, context.parsed.args[0] ?? null);
    const destination = await openDestination(output, context.stdout, context.settings.s3 ?? AWS_ITSELF);
    const lines = new SortedLines();
    try {
      const counts = await writeWacz(
        {
          title: `${job.name}-${job.run}`,
          software: `Seine/${VERSION}`,
          now: Date.now(),
          files: warcFiles(folder.blobs, job),
          pages: pagesOf(folder.store, job),
          lines,
        },
        destination,
      );
      if (counts.files === 0)
        throw new SeineError(`job ${job.name}-${job.run} has no archived pages`, {
          hint: 'pages are archived unless the job says archive: false',
        });
      await destination.finish();
      if (context.json && !isStandardOutput(output)) printJson(context, { ...counts, output });
      else if (!isStandardOutput(output))
        print(
          context.stderr,
          `${formatAmount(counts.records, 'record')} and ${formatAmount(counts.pages, 'page')} written to ${output}\n`,
        );
      return 'success';
    } catch (error) {
      await destination.abort();
      throw error;
    } finally {
      lines.close();
    }
  });
}

/** Their folders are numbers of batches, which are part of their names already. */
async function* warcFiles(blobs: Blobs, { name, run }: Job): AsyncIterable<WarcFile> {
  const prefix = `warc/${name}-${run}/`;
  const keys: string[] = [];
  for await (const { key } of blobs.list(prefix)) if (key.endsWith('.warc.gz')) keys.push(key);
  for (const key of keys.sort())
    yield {
      name: key.slice(prefix.length).replaceAll('/', '-'),
      async read() {
        const bytes = await blobs.read(key);
        if (!bytes) throw new SeineError(`the archive ${blobs.locate(key)} is missing`);
        return bytes;
      },
    };
}

async function* pagesOf(store: Store, job: Job): AsyncIterable<WaczPage> {
  for await (const { url, state, archive, contentType, fetchedAt } of store.views.tasks(job.id)) {
    const isPage = (state === 'done' || state === 'unchanged') && archive !== null && isHtml(contentType);
    if (isPage && fetchedAt !== null) yield { url, ts: fetchedAt };
  }
}
