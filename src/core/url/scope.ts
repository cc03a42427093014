import type { FollowRule } from '../job-schema/job.ts';
import { compilePatterns } from './pattern.ts';
import { sameSiteHost, siteOf } from './url.ts';

/** A follow rule, ready to be asked. */
export interface CompiledFollow {
  rule: FollowRule;
  fits: (url: string) => boolean;
}

export function compileFollow(rule: FollowRule): CompiledFollow {
  const wanted = rule.match ? compilePatterns(rule.match) : () => true;
  const unwanted = rule.not ? compilePatterns(rule.not) : () => false;
  return { rule, fits: (url) => wanted(url) && !unwanted(url) };
}

/** Whether a link from a page of `pageHost` to `host` stays inside. */
export function isWithin(scope: FollowRule['within'], host: string, pageHost: string): boolean {
  if (scope === 'any' || host === pageHost) return true;
  return scope === 'site' && (sameSiteHost(host, pageHost) || siteOf(host) === siteOf(pageHost));
}

/** The first rule that takes a link decides about its route and priority. */
export function ruleFor(
  rules: readonly CompiledFollow[],
  url: string,
  host: string,
  pageHost: string,
): FollowRule | null {
  for (const { rule, fits } of rules) if (isWithin(rule.within, host, pageHost) && fits(url)) return rule;
  return null;
}

/**
 * A source may redirect anywhere: it was asked for by name. A followed link must land where a
 * link could have led, or on the same host with or without `www.`.
 */
export function mayRedirect(
  rules: readonly CompiledFollow[],
  from: { host: string; depth: number },
  to: { url: string; host: string },
): boolean {
  if (from.depth === 0 || sameSiteHost(from.host, to.host)) return true;
  return ruleFor(rules, to.url, to.host, from.host) !== null;
}
