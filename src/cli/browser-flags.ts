import { SeineError } from '../core/errors.ts';
import type { JobInput } from '../core/job-schema/job.ts';
import type { Context } from './context.ts';

type RouteInput = NonNullable<JobInput['routes']>[number];

const EXTENTS = { full: 'page', screen: 'screen' } as const;
const MODES = { always: 'browser', auto: 'auto' } as const;

/** `--browser` and what goes with it: every page of the job is meant, also those without a route. */
export function withBrowser(job: JobInput, values: Context['parsed']['values']): JobInput {
  const { browser, screenshot, pdf, 'wait-for': waitFor } = values;
  if ([browser, screenshot, pdf, waitFor].every((value) => value === undefined)) return job;
  const fetcher = choose('--browser', MODES, browser ?? 'always');
  const of = screenshot === undefined ? null : choose('--screenshot', EXTENTS, screenshot);
  if (fetcher === 'auto' && (of !== null || pdf))
    throw new SeineError(`--${of === null ? 'pdf' : 'screenshot'} needs a browser for every page`, {
      hint: 'use --browser without =auto',
    });
  const render = (route: RouteInput): RouteInput => {
    if (route.kind === 'media' || route.kind === 'sitemap') return route;
    const actions = waitFor === undefined ? [] : [{ waitFor }];
    // Whoever looks at a page wants to see it whole.
    const settings = {
      ...(waitFor === undefined ? { waitUntil: 'idle' as const } : {}),
      ...route.browser,
      ...(of === null ? {} : { screenshot: { of } }),
      ...(pdf ? { pdf: true } : {}),
      actions: [...actions, ...(route.browser?.actions ?? [])],
    };
    return { ...route, fetcher, browser: settings };
  };
  const routes = job.routes ?? [];
  const takesAll = routes.some((route) => route.match === undefined);
  const rest: RouteInput[] = takesAll ? [] : [{ name: freeName(routes) }];
  return { ...job, routes: [...routes, ...rest].map(render) };
}

function choose<T extends string>(option: string, choices: Record<string, T>, text: string): T {
  if (Object.hasOwn(choices, text)) return choices[text]!;
  throw new SeineError(`${option} must be one of ${Object.keys(choices).join(', ')}, got '${text}'`);
}

function freeName(routes: readonly RouteInput[]): string {
  const isTaken = (name: string) => routes.some((route) => route.name === name);
  let name = 'page';
  for (let count = 2; isTaken(name); count++) name = `page-${count}`;
  return name;
}
