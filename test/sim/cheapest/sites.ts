import { type EscalationLevel, escalationLevels } from '../../../src/core/escalation/escalation.ts';
import type { FailureCode } from '../../../src/core/failures.ts';
import { type Random, randomOf } from '../arena/hosts.ts';

/**
 * Simulated sites that let some fetch methods in and refuse others, in a dozen kinds. A seed decides prices, sizes and chances.
 * A page may refuse a method for ever (`works`), and each attempt may fail by chance (`luck`).
 */

export const ROUTE = {
  name: 'all',
  fetcher: 'auto',
  escalate: ['identity', 'impersonate', 'proxy', 'browser', 'api'],
  proxy: 'pool',
} as const;

export const LEVELS: readonly EscalationLevel[] = escalationLevels(ROUTE, {
  identity: {},
  escalation: { choose: 'cheapest' },
});

/** How one level fares with the pages of a template. */
interface LevelTruth {
  /** Share of pages that it can bring at all, and of attempts at those that succeed. */
  works: number;
  luck: number;
}

export interface Template {
  path: string;
  /** Share of pages that are nothing without scripts. */
  scripts: number;
  levels: LevelTruth[];
  bytes: number;
  browserBytes: number;
  browserMs: number;
}

/** What a kind of site does to a level. */
type Rule = (level: EscalationLevel, random: Random) => LevelTruth;

const isBrowser = ({ fetcher }: EscalationLevel) => fetcher === 'browser';
const between = (low: number, high: number, random: Random) => low + (high - low) * random();
const sure = (random: Random): LevelTruth => ({ works: 1, luck: between(0.95, 1, random) });
const refused = (): LevelTruth => ({ works: 0, luck: 1 });
/** Some exits of a pool are known to the site. */
const pooled = (random: Random): LevelTruth => ({
  works: between(0.93, 1, random),
  luck: between(0.55, 0.98, random),
});

const RULES = {
  open: (_level, random) => sure(random),
  headers: (level, random) =>
    (level.browserLike || isBrowser(level) || level.fetcher === 'api' ? sure : refused)(random),
  tls: (level, random) => (level.fetcher === 'http' ? refused : sure)(random),
  address: (level, random) =>
    level.fetcher === 'api' ? sure(random) : level.pool === null ? refused() : pooled(random),
  strict: (level, random) => {
    if (level.fetcher === 'api') return sure(random);
    if (isBrowser(level) && level.pool !== null) return { works: between(0.1, 0.9, random), luck: 0.9 };
    return refused();
  },
  sometimes: (level, random) =>
    level.fetcher === 'api' || isBrowser(level)
      ? sure(random)
      : { works: 1, luck: between(0.2, 0.9, random) },
} as const satisfies Record<string, Rule>;

type RuleName = keyof typeof RULES;

interface Kind {
  /** The rule of each template; drawn from when there are several. */
  rules: readonly RuleName[];
  templates: number;
  scripts?: number | 'some';
  /** Another rule holds from about the middle of the first thousand pages on. */
  later?: RuleName;
  /** Pages of some megabytes: bytes through proxies cost more than anything else. */
  large?: true;
}

const ALL_RULES = Object.keys(RULES) as RuleName[];

export const SITE_KINDS: Readonly<Record<string, Kind>> = {
  'open to all': { rules: ['open'], templates: 2 },
  'checks headers': { rules: ['headers'], templates: 3 },
  'checks TLS': { rules: ['tls'], templates: 3 },
  'refuses our address': { rules: ['address'], templates: 3 },
  'refuses our address, large pages': { rules: ['address'], templates: 2, large: true },
  'needs scripts': { rules: ['open'], templates: 2, scripts: 1 },
  'some pages need scripts': { rules: ['open', 'headers'], templates: 3, scripts: 'some' },
  'scripts, and refuses our address': { rules: ['address'], templates: 2, scripts: 1 },
  'lets only APIs in, mostly': { rules: ['strict'], templates: 2 },
  'refuses now and then': { rules: ['sometimes'], templates: 2 },
  'each template its own': { rules: ALL_RULES, templates: 5 },
  'closes: open, then by address': { rules: ['open'], templates: 2, later: 'address' },
  'closes: headers, then APIs only': { rules: ['headers'], templates: 2, later: 'strict' },
  'opens: by address, then open': { rules: ['address'], templates: 2, later: 'open' },
};

export interface Site {
  kind: string;
  prices: { proxyGb: number; apiCall: number; machineHour: number };
  /** The template of a page, as it is when this many pages were done. */
  templateOf(page: number): Template;
  /** What an attempt brings: null, or why it fails; and what it took. The same for whoever asks. */
  attempt(
    page: number,
    level: number,
    attempt: number,
  ): { code: FailureCode | null; bytes: number; durationMs: number };
}

const CHANGE_FROM = 350;
const CHANGE_TO = 650;

export function openSite(kind: string, seed: number): Site {
  const { rules, templates: count, scripts = 0, later: laterRule, large } = SITE_KINDS[kind]!;
  const random = randomOf(seed);
  const geometric = (low: number, high: number) => low * (high / low) ** random();
  const prices = {
    proxyGb: geometric(0.5, 10),
    apiCall: geometric(0.000_4, 0.005),
    machineHour: geometric(0.04, 0.4),
  };
  const changesAt =
    laterRule === undefined ? Number.POSITIVE_INFINITY : between(CHANGE_FROM, CHANGE_TO, random);
  const templates = Array.from({ length: count }, (_, index): { now: Template; later: Template } => {
    const rule = RULES[rules[Math.floor(random() * rules.length)]!];
    const bytes = geometric(20_000, 200_000) * (large ? 20 : 1);
    const now = {
      path: `/${'abcdefgh'[index]}/`,
      scripts: scripts === 'some' ? between(0.1, 0.9, random) : scripts,
      levels: LEVELS.map((level) => rule(level, random)),
      bytes,
      browserBytes: bytes * between(4, 20, random),
      browserMs: geometric(1_500, 8_000),
    };
    return {
      now,
      later: laterRule ? { ...now, levels: LEVELS.map((level) => RULES[laterRule](level, random)) } : now,
    };
  });
  const templateOf = (page: number) => {
    const { now, later } = templates[Math.floor(randomOf(seed + page * 31)() * count)]!;
    return page < changesAt ? now : later;
  };
  return {
    ...{ kind, prices, templateOf },
    attempt(page, level, attempt) {
      const template = templateOf(page);
      const { works, luck } = template.levels[level]!;
      const { fetcher } = LEVELS[level]!;
      const ofPage = randomOf(seed * 7 + page * 101);
      const needsScripts = ofPage() < template.scripts && fetcher !== 'browser' && fetcher !== 'api';
      const isWorking = randomOf(seed + page * 997 + level * 13)() < works;
      const draw = randomOf(seed + page * 7_919 + level * 104_729 + attempt * 1_299_709);
      const isLucky = draw() < luck;
      const noise = Math.exp(0.4 * (draw() + draw() + draw() - 1.5));
      const code = !isWorking || !isLucky ? 'blocked' : needsScripts ? 'script-only' : null;
      const size = fetcher === 'browser' ? template.browserBytes : template.bytes;
      // A page that refuses is small.
      const bytes = code === 'blocked' ? 5_000 : size * noise;
      return { code, bytes, durationMs: fetcher === 'browser' ? template.browserMs * noise : 200 };
    },
  };
}
