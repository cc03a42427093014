import { randomBytes } from 'node:crypto';
import type { FollowRule, JobSpec } from '../../../core/job-schema/job.ts';
import { compilePatterns } from '../../../core/url/pattern.ts';
import { hashOfSpec, parseJob } from '../../../job-file/parse-job.ts';
import type { Job } from '../../../ports/store.ts';
import type { ApiContext, Caller } from '../requests/access.ts';
import { Problem } from '../requests/problems.ts';
import { addToServedJob } from '../scrape/added-tasks.ts';
import { specOf, tenantName } from '../scrape/api-jobs.ts';
import { discardJob } from '../scrape/discard-job.ts';
import { mapSite } from './map-site.ts';
import {
  batchRequest,
  type FirecrawlCrawl,
  type FirecrawlMap,
  PAGES_DEFAULT,
  startUrl,
  webhookOf,
} from './options.ts';

/** A sitemap that is not read by then is left out, unless there is nothing else. */
const SITEMAP_MS = 20_000;

/** Written down, but not yet started. */
export async function createCrawl(
  context: ApiContext,
  asked: FirecrawlCrawl,
  { caller, requestId }: { caller: Caller; requestId: string | null },
): Promise<Job> {
  const { store, webhooks, now } = context;
  const url = startUrl(asked.url);
  if (asked.webhook !== undefined) webhooks.check(webhookOf(asked.webhook));
  const rule: FollowRule = { within: scopeOf(asked), priority: 0, ...pathsOf(asked, url) };
  const name = tenantName(caller, `crawl-${randomBytes(12).toString('hex')}`);
  const spec = await crawlSpec(context, asked, { name, rule, caller });
  const listed = await sitemapUrls(context, { ...asked, url }, { rule, caller });
  const urls = asked.sitemap === 'only' ? listed : [url, ...listed];
  if (urls.length === 0)
    throw new Problem('bad-option', 'sitemap: the site has none, or none with such pages');
  const code = { spec, specHash: hashOfSpec(spec, null), bundle: null, file: null };
  const job = await store.jobs.create({
    ...code,
    name,
    now: now(),
    owner: caller.keyId,
    countsPages: true,
    requestId,
    stopped: 'its pages are being written down',
  });
  try {
    if (asked.webhook !== undefined) await webhooks.attach(job.id, webhookOf(asked.webhook), caller);
    const rows = urls.map((row) => ({ url: row, meta: null }));
    const { accepted } = await addToServedJob(context, job.id, rows, { priority: 0 });
    if (accepted === 0) throw new Problem('bad-url');
  } catch (error) {
    await discardJob(context, job);
    throw error;
  }
  // The job ends when nothing is left, instead of waiting for more.
  await store.jobs.closeToMore(job.id, now());
  await store.jobs.update(job.id, { state: 'running', reason: null });
  return job;
}

async function crawlSpec(
  context: ApiContext,
  asked: FirecrawlCrawl,
  { name, rule, caller }: { name: string; rule: FollowRule; caller: Caller },
): Promise<JobSpec> {
  const options = batchRequest(asked.scrapeOptions, { robots: !asked.ignoreRobotsTxt, delay: asked.delay });
  const base = await specOf(options, name, context, caller);
  const { maxConcurrency: parallel, maxDiscoveryDepth: depth } = asked;
  const definition = {
    ...base,
    redirects: 'auto',
    follow: asked.sitemap === 'only' ? false : [rule],
    limits: { ...base.limits, pages: asked.limit, ...(depth === undefined ? {} : { depth }) },
    politeness: { ...base.politeness, ...(parallel === undefined ? {} : { parallel }) },
  };
  return (await parseJob(definition, 'options', name)).spec;
}

/** Read before the crawl: as a source of it, the sitemaps themselves would count as pages. */
async function sitemapUrls(
  context: ApiContext,
  { url, limit, sitemap }: FirecrawlCrawl,
  { rule, caller }: { rule: FollowRule; caller: Caller },
): Promise<string[]> {
  if (sitemap === 'skip') return [];
  const asked: FirecrawlMap = {
    url,
    limit: Math.min(limit, PAGES_DEFAULT),
    sitemap: 'only',
    includeSubdomains: rule.within !== 'host',
    ignoreQueryParameters: false,
    timeout: SITEMAP_MS,
  };
  const isWanted = rule.match ? compilePatterns(rule.match) : () => true;
  const isUnwanted = rule.not ? compilePatterns(rule.not) : () => false;
  const links = await mapSite(context, asked, caller);
  return links.map((link) => link.url).filter((link) => isWanted(link) && !isUnwanted(link));
}

function scopeOf({ allowExternalLinks, allowSubdomains }: FirecrawlCrawl): 'any' | 'site' | 'host' {
  if (allowExternalLinks) return 'any';
  return allowSubdomains ? 'site' : 'host';
}

function pathsOf(asked: FirecrawlCrawl, url: string): { match?: string[]; not?: string[] } {
  const included = asked.includePaths.map(patternOf);
  const excluded = asked.excludePaths.map(patternOf);
  // Only what is below the first page, as a folder is.
  const below = new URL(url).pathname.replace(/\/+$/, '');
  const isBelow = !asked.crawlEntireDomain && !asked.allowExternalLinks && below !== '';
  const match = included.length === 0 && isBelow ? [below, `${below}/**`] : included;
  return { ...(match.length > 0 ? { match } : {}), ...(excluded.length > 0 ? { not: excluded } : {}) };
}

function patternOf(regex: string): string {
  const pattern = patternOfRegex(regex);
  if (pattern !== null) return pattern;
  throw new Problem('bad-option', `the path ${regex.slice(0, 200)} has more than text, ^, $, .* and [^/]*`);
}

/**
 * Paths of Firecrawl are regular expressions that may match anywhere in the path. The simple ones, which are nearly all,
 * are patterns of ours as well; a dot alone is taken for the dot that nearly everyone means. Null for the others: a pattern
 * that is only similar would crawl other pages than meant.
 */
export function patternOfRegex(regex: string): string | null {
  const isFromStart = regex.startsWith('^');
  const isToEnd = regex.endsWith('$') && !regex.endsWith('\\$');
  const text = regex.slice(isFromStart ? 1 : 0, isToEnd ? -1 : undefined);
  let pattern = '';
  for (const [part] of text.matchAll(PARTS)) {
    const known = WILDCARDS.get(part);
    if (known !== undefined) pattern += known;
    else if (/^\\[^\w*]$/.test(part)) pattern += part[1];
    else if (/^[\w\-/%~!@&=:;,. ]$/.test(part)) pattern += part;
    else return null;
  }
  const start = isFromStart ? '' : '**';
  const whole = `${start}${pattern}${isToEnd ? '' : '**'}`.replace(/\*{3,}/g, '**');
  if (whole.startsWith('/')) return whole;
  return isFromStart ? null : `/${whole}`;
}

const PARTS = /\.\*\??|\.\+\??|\[\^\/\][*+]|\\.|./gs;

const WILDCARDS = new Map([
  ['.*', '**'],
  ['.*?', '**'],
  ['.+', '**'],
  ['.+?', '**'],
  ['[^/]*', '*'],
  ['[^/]+', '*'],
]);
