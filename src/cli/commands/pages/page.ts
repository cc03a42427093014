import type { Folder } from '../../../app/folder.ts';
import { requireJob } from '../../../coordinator/jobs.ts';
import { type ExitName, SeineError } from '../../../core/errors.ts';
import type { TaskRow } from '../../../core/model.ts';
import { normalizeUrl } from '../../../core/url/url.ts';
import { readPage } from '../../../worker/storage/read-page.ts';
import { type Command, type Context, print, printable, withFolder } from '../../context.ts';

export const pageCommand: Command = (context) =>
  withFolder(context, async (folder): Promise<ExitName> => {
    const [raw] = context.parsed.args;
    if (!raw) throw new SeineError('no URL given', { hint: 'seine page <url>' });
    const job = await requireJob(folder.store, context.parsed.values.job ?? null);
    const target = normalizeUrl(raw, null, job.spec.url);
    const task = target && (await folder.store.views.task(job.id, target.url));
    if (!task)
      throw new SeineError(`${job.name}-${job.run} has no task ${raw}`, {
        hint: 'list the tasks with `seine export --what tasks`, or choose a job with --job',
      });
    if (context.parsed.values.screenshot) return printPicture(context, folder, task);
    if (!task.archive)
      throw new SeineError(
        `no stored page for ${task.url}: the task is ${task.state}${task.failureCode ? ` (${task.failureCode})` : ''}`,
      );
    const page = await readPage(folder.blobs, task.archive, { sha256: task.sha256 }).catch(
      (error: unknown) => {
        throw withPlace(error, context, folder);
      },
    );
    if (context.parsed.values.headers) {
      print(context.stdout, `HTTP ${page.status}\n`);
      for (let index = 0; index + 1 < page.headers.length; index += 2)
        print(context.stdout, `${printable(page.headers[index]!)}: ${printable(page.headers[index + 1]!)}\n`);
      print(context.stdout, '\n');
    }
    // Byte for byte into a file or a pipe; a terminal would obey what is in it.
    if (context.stdout.isTTY) print(context.stdout, page.body.toString());
    else context.stdout.write(page.body);
    return 'success';
  });

/** A page that was stored elsewhere is missed where nothing was said about the place. */
function withPlace(error: unknown, { settings }: Context, folder: Folder): unknown {
  if (!(error instanceof SeineError) || settings.blobs) return error;
  return new SeineError(error.message, {
    hint: `looked in ${folder.blobsPlace}; if the files of the job are elsewhere, pass --blobs or set SEINE_BLOBS`,
    cause: error,
  });
}

async function printPicture(context: Context, folder: Folder, task: TaskRow): Promise<ExitName> {
  const { stdout } = context;
  const picture = task.shots.find(({ type }) => type.startsWith('image/'));
  if (!picture)
    throw new SeineError(`no stored screenshot for ${task.url}`, { hint: 'run the job with --screenshot' });
  if (stdout.isTTY)
    throw new SeineError('an image cannot be written to a terminal', {
      hint: `redirect the output to a file; the image is stored at ${folder.blobs.locate(picture.key)}`,
    });
  const bytes = await folder.blobs.read(picture.key);
  if (!bytes)
    throw withPlace(new SeineError(`${folder.blobs.locate(picture.key)} is missing`), context, folder);
  stdout.write(bytes);
  return 'success';
}
