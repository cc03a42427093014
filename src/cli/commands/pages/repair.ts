import { type ExitName, SeineError } from '../../../core/errors.ts';
import type { Job, Store } from '../../../ports/store.ts';
import { formerPages, samplePages } from '../../../reparse/archived-pages.ts';
import { type RepairedField, repairFields } from '../../../reparse/repair-fields.ts';
import { formatPercent } from '../../../tui/format.ts';
import { type Command, type Context, print, printable, printJson } from '../../context.ts';
import { limitOf, snippet } from './learn.ts';
import { type ArchiveWork, withArchive } from './reparse.ts';
import { fieldText, proposalLines } from './show-proposals.ts';

interface RepairedRoute {
  route: string;
  /** Pages of today, and those of them that have an earlier version. */
  pages: number;
  compared: number;
  fields: RepairedField[];
}

/** Proposes new selectors for fields that dropped, with the evidence. Changes nothing. */
export const repairCommand: Command = (context) =>
  withArchive(context, { toWork: false, args: context.parsed.args }, async (work): Promise<ExitName> => {
    const { job, store } = work;
    const names = routesToCompare(context, work);
    const before = job.run > 1 ? await runBefore(store, job) : null;
    const routes: RepairedRoute[] = [];
    for (const route of names) {
      const select = work.code.spec.routes.find(({ name }) => name === route)?.select;
      if (!select) continue;
      const sample = await samplePages(work, `route ${route}`, limitOf(context));
      const pairs = await formerPages({ ...work, before }, sample);
      const fields = await repairFields(select, sample, pairs);
      routes.push({ route, pages: sample.length, compared: pairs.size, fields });
    }
    show(context, `${job.name}-${job.run}`, routes);
    const isOpen = routes.some(({ fields }) => fields.some(({ proposals }) => proposals.length === 0));
    return isOpen ? 'failed-check' : 'success';
  });

/** All that have selectors: a route whose pages lost every field makes no record that could tell. */
function routesToCompare({ parsed }: Context, { code }: ArchiveWork): string[] {
  const names = code.spec.routes.filter(({ select }) => select).map(({ name }) => name);
  const { route } = parsed.values;
  if (names.length === 0)
    throw new SeineError('the job has no route with selectors', { hint: 'see docs/learning-selectors.md' });
  if (route === undefined) return names;
  if (!names.includes(route)) throw new SeineError(`the job has no route '${route}' with selectors`);
  return [route];
}

async function runBefore(store: Store, { name, run }: Job): Promise<Job | null> {
  const found = await store.jobs.find(`${name}-${run - 1}`);
  // Another job may have that very name.
  return found?.name === name ? found : null;
}

function show(context: Context, id: string, routes: readonly RepairedRoute[]): void {
  if (context.json) {
    printJson(context, { id, routes });
    return;
  }
  print(context.stdout, `${routes.flatMap((route) => routeLines(id, route)).join('\n')}\n`);
}

function routeLines(id: string, { route, pages, compared, fields }: RepairedRoute): string[] {
  const head = `${id}, route ${printable(route)}: ${pages} pages, ${compared} of them with an earlier version`;
  if (fields.length === 0)
    return [
      head,
      compared === 0 ? '  nothing to compare with: no page was archived before' : '  no field is lost',
    ];
  const share = (count: number, of: number) => formatPercent(of === 0 ? 0 : count / of);
  const found = fields.filter(({ proposals }) => proposals.length > 0);
  return [
    head,
    ...fields.flatMap(({ field, now, before, after, pages: of, proposals, reason }) => [
      `  ${printable(field)} was read from ${share(before, of)} of them, now from ${share(after, of)}, by ${fieldText(now)}`,
      ...(reason === null ? proposalLines(field, proposals) : [`    not repaired: ${reason}`]),
    ]),
    ...(found.length === 0
      ? []
      : [
          '',
          'nothing was changed; to repair it, write in the job:',
          ...snippet(found.map((one) => [one.field, one.proposals[0]!.field])),
        ]),
  ];
}
