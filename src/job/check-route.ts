import { SeineError } from '../core/errors.ts';
import { fetcherOfRoute, mayRender } from '../core/escalation/escalation.ts';
import type { MediaRule, RouteSpec } from '../core/job-schema/job.ts';
import type { RouteCode } from '../worker/job/route-code.ts';

/** Finds what a route says in vain. Only when a job is loaded: a job that runs on without its code must still run. */
export function checkRoute(route: RouteSpec, code: RouteCode): void {
  const captures = route.browser?.capture ?? [];
  const makesRecords =
    route.select !== undefined || route.markdown || code.handler !== undefined || captures.length > 0;
  if (!makesRecords) checkIdle(route, code);
  checkNames(route, code);
  checkBrowser(route);
}

/** Pictures and captured data are there for every page of a route, or for none. */
function checkBrowser(route: RouteSpec): void {
  const { name, browser, kind } = route;
  const fetcher = fetcherOfRoute(route);
  if ((fetcher === 'browser' || fetcher === 'auto') && kind !== 'page')
    throw new SeineError(`route '${name}' has kind ${kind}, which does not use a browser`);
  if (!browser) return;
  if (!mayRender(route))
    throw new SeineError(`route '${name}' has \`browser\`, but its fetcher is ${fetcher}`, {
      hint: 'set `fetcher` to browser or auto, or leave it out',
    });
  const wanted = [
    ...(browser.screenshot ? ['screenshot'] : []),
    ...(browser.pdf ? ['pdf'] : []),
    ...(browser.capture.length > 0 ? ['capture'] : []),
  ];
  if (wanted.length > 0 && fetcher !== 'browser')
    throw new SeineError(
      `route '${name}' has ${wanted.join(' and ')}, but only some of its pages use a browser`,
      { hint: 'set `fetcher: browser`' },
    );
}

/** Steps for records that are never made. */
function checkIdle(route: RouteSpec, code: RouteCode): void {
  const given = [
    ...(route.key === undefined ? [] : ['key']),
    ...(route.schema === undefined ? [] : ['schema']),
    ...Object.keys(code),
  ];
  if (given.length === 0) return;
  throw new SeineError(
    `route '${route.name}' has ${given.join(' and ')}, but no select, markdown or handler to make records`,
  );
}

/** Only where nothing but selectors makes records is it known which fields they have. */
function checkNames(route: RouteSpec, { handler, clean, schema }: RouteCode): void {
  if (handler || clean || schema) return;
  const names = [
    ...Object.keys(route.select ?? {}),
    ...(route.markdown ? ['title', 'markdown'] : []),
    ...(route.browser?.capture ?? []).map((capture) => capture.name),
  ];
  const fieldOf = (rule: MediaRule) => (typeof rule === 'string' ? [] : (rule.field ?? []));
  for (const [what, fields] of [
    ['the key', [route.key ?? []].flat()],
    ['a media rule', route.media.flatMap(fieldOf)],
  ] as const) {
    const unknown = fields.find((field) => !names.includes(field));
    if (unknown !== undefined)
      throw new SeineError(`${what} of route '${route.name}' uses the unknown field '${unknown}'`);
  }
}
