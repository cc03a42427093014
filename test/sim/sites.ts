import type { FailureCode } from '../../src/core/failures.ts';
import type { FetchRequest, FetchResult } from '../../src/ports/fetcher.ts';
import type { Process, World } from './virtual-time.ts';

/** Pages that fail always do so in one of these ways. */
const SICKNESSES = ['503', '500', 'reset', 'timeout'] as const;
type Sickness = (typeof SICKNESSES)[number];

interface SimPage {
  url: string;
  kind: 'ok' | 'missing' | 'flaky' | 'redirect' | 'forbidden' | 'poison' | Sickness;
  links: string[];
  /** For a redirect. */
  to: string;
  /** For a flaky page: failures before it answers. */
  failsLeft: number;
  /** Whether the list of the job has it; other pages are found by links. */
  isListed: boolean;
  body: Buffer;
}

type Manner =
  | { kind: 'plain' }
  /** Answers 429 to what is more than `count` in a window. */
  | { kind: 'limits'; count: number; windowMs: number; tells: boolean }
  /** Answers nothing but 403 for a while, after some pages. */
  | { kind: 'bans'; afterPages: number; forMs: number }
  /** Accepts requests and does not answer them for a while. */
  | { kind: 'stalls'; fromMs: number; forMs: number }
  /** Refuses connections for a while. */
  | { kind: 'down'; fromMs: number; forMs: number }
  | { kind: 'gone' };

type Robots = 'absent' | 'allows' | 'forbids' | 'delays' | 'fails' | 'elsewhere';

export interface SimHost {
  name: string;
  manner: Manner;
  robots: Robots;
  latencyMs: number;
  pages: SimPage[];
  answered: number;
  /** Times of requests within the window of a limit. */
  recent: { at: number; address: string }[];
  /** Requests of the last seconds, from whatever address. */
  sent: { at: number; address: string }[];
  bannedUntil: number;
  lastSentAt: number;
  /** What the clock of the last request was off by. */
  lastOffset: number;
  openRequests: number;
  requests: number;
}

/** Of the pages of a job that follows links. */
const LISTED_SHARE = 0.75;

interface SiteOptions {
  /** Pages that the list has: every one of them becomes a task, whatever happens to the pages that link to others. */
  tasks: number;
  isOn: (kind: string) => boolean;
  follows: boolean;
  /** Least time between two requests to a host; 0 without one. */
  gapMs: number;
  headersMs: number;
  hosts?: number | undefined;
  /** Hosts that limit requests count those of each address. */
  byAddress?: boolean;
}

/** The web of one run: what each host and page does is known before it starts, and what must become of each task. */
export class Sites {
  readonly hosts: SimHost[] = [];
  readonly pages = new Map<string, SimPage>();
  /** Nothing can be reached in this time. */
  offline: { from: number; until: number; how: keyof typeof OFFLINE } | null = null;
  faults = 0;
  /** Told of each request that leaves. */
  onRequest: (host: SimHost, process: Process) => void = () => {};
  onPoison: (process: Process) => void = () => {};
  readonly #world: World;
  readonly #options: SiteOptions;

  constructor(world: World, options: SiteOptions, prefix: string) {
    this.#world = world;
    this.#options = options;
    const { random } = world;
    const drawn = random.between(1, 7);
    const count = options.hosts ?? drawn;
    for (let index = 0; index < count; index++) this.hosts.push(this.#host(`h${index}.${prefix}.test`));
    for (let index = 0, listed = 0; listed < options.tasks; index++)
      if (this.#addPage(random.pick(this.hosts), index).isListed) listed++;
    this.#linkPages();
    if (options.isOn('network') && random.chance(0.3)) {
      const from = random.pick([0, 1_000, 4_000]);
      const until = from + random.pick([5_000, 60_000, 600_000]);
      this.offline = { from, until, how: random.pick(['network', 'names'] as const) };
      this.faults++;
    }
  }

  #host(name: string): SimHost {
    const { random } = this.#world;
    const drawn = this.#manner();
    // Otherwise few hosts would need more than one address.
    const isLimiting = this.#options.byAddress && drawn.kind === 'plain' && this.hosts.length % 2 === 0;
    const manner = isLimiting ? LIMITS_ADDRESSES : drawn;
    if (manner.kind !== 'plain') this.faults++;
    return {
      name,
      manner,
      robots: random.chance(0.6)
        ? 'absent'
        : random.pick(['allows', 'forbids', 'delays', 'fails', 'elsewhere'] as const),
      latencyMs: random.pick([5, 20, 60, 300]),
      pages: [],
      answered: 0,
      recent: [],
      sent: [],
      bannedUntil: 0,
      lastSentAt: Number.NEGATIVE_INFINITY,
      lastOffset: 0,
      openRequests: 0,
      requests: 0,
    };
  }

  #manner(): Manner {
    const { isOn } = this.#options;
    const { random } = this.#world;
    if (random.chance(0.55)) return { kind: 'plain' };
    const fromMs = random.between(0, 20_000);
    const forMs = random.pick([2_000, 10_000, 40_000]);
    const kind = random.pick(['limits', 'bans', 'stalls', 'down', 'gone'] as const);
    if (!isOn(kind)) return { kind: 'plain' };
    if (kind === 'limits')
      return {
        kind,
        count: random.pick([2, 5, 20]),
        windowMs: random.pick([1_000, 5_000, 30_000]),
        tells: random.chance(0.5),
      };
    if (kind === 'bans')
      return {
        kind,
        afterPages: random.between(3, 20),
        forMs: random.pick([20_000, 60_000, 900_000, 1_800_000]),
      };
    if (kind === 'gone') return { kind };
    return { kind, fromMs, forMs };
  }

  #addPage(host: SimHost, index: number): SimPage {
    const { random } = this.#world;
    const page: SimPage = {
      url: `http://${host.name}/${host.robots === 'forbids' && random.chance(0.2) ? 'private' : 'p'}/${index}`,
      kind: this.#kindOf(),
      links: [],
      to: '',
      failsLeft: random.between(1, 3),
      isListed: !this.#options.follows || index < 5 || random.chance(LISTED_SHARE),
      body: NOTHING,
    };
    if (page.kind !== 'ok') this.faults++;
    host.pages.push(page);
    this.pages.set(page.url, page);
    return page;
  }

  #kindOf(): SimPage['kind'] {
    const { random } = this.#world;
    const { isOn } = this.#options;
    const roll = random.next();
    if (roll < 0.02) return 'missing';
    if (roll < 0.05) return 'flaky';
    if (roll < 0.08) return isOn('redirects') ? 'redirect' : 'ok';
    if (roll < 0.11) return isOn('sick') ? random.pick(SICKNESSES) : 'ok';
    if (roll < 0.115) return 'forbidden';
    if (roll < 0.125) return isOn('poison') ? 'poison' : 'ok';
    return 'ok';
  }

  /** Each page that is not listed is linked from an earlier one that answers; some links are repeated. */
  #linkPages(): void {
    const { random } = this.#world;
    const all = [...this.pages.values()];
    const linking = new Map<string, SimPage[]>();
    for (const page of all) {
      const host = hostIn(page.url);
      const earlier = linking.get(host) ?? [];
      linking.set(host, earlier);
      if (!page.isListed && earlier.length === 0) page.isListed = true;
      if (!page.isListed) random.pick(earlier).links.push(page.url);
      if (earlier.length > 0 && random.chance(0.1)) random.pick(earlier).links.push(page.url);
      if (page.kind === 'ok' && !page.url.includes('/private/')) earlier.push(page);
      if (page.kind === 'redirect') page.to = this.#targetOf(page, all);
    }
  }

  #targetOf(page: SimPage, all: readonly SimPage[]): string {
    const { random } = this.#world;
    const target = random.pick(all);
    const isOther = target.url !== page.url && target.kind === 'ok' && !target.url.includes('/private/');
    // Without links another host is fine; with them only the own host is in scope.
    const isNear = hostIn(target.url) === hostIn(page.url);
    if (isOther && (isNear || !this.#options.follows)) return target.url;
    page.kind = 'ok';
    return '';
  }

  hostOf(url: string): SimHost | undefined {
    return this.hostNamed(hostIn(url));
  }

  hostNamed(host: string): SimHost | undefined {
    return this.hosts.find(({ name }) => name === host);
  }

  /** One request of a worker, from the connection to the last byte. */
  fetch(request: FetchRequest, process: Process): Promise<FetchResult> {
    const { promise, resolve } = Promise.withResolvers<FetchResult>();
    const { random } = this.#world;
    let cancel = () => {};
    let host: SimHost | null = null;
    const end = (result: FetchResult) => {
      cancel();
      request.signal.removeEventListener('abort', abort);
      if (host) host.openRequests--;
      host = null;
      resolve(result);
    };
    const abort = () => end({ kind: 'aborted' });
    request.signal.addEventListener('abort', abort);
    const connectMs = random.chance(0.5) ? 0 : random.between(1, 30);
    const send = () => {
      if (request.signal.aborted || !request.onSent()) return abort();
      host = this.hostOf(request.url)!;
      host.openRequests++;
      this.onRequest(host, process);
      const { result, ms } = this.#answer(host, request.url, process.name);
      cancel = this.#world.after(ms, process, () => {
        if (
          this.pages.get(request.url)?.kind === 'poison' &&
          result.kind === 'response' &&
          result.status === 200
        )
          return this.onPoison(process);
        end(result);
      });
    };
    if (connectMs === 0) send();
    else cancel = this.#world.after(connectMs, process, send);
    return promise;
  }

  #answer(host: SimHost, url: string, address: string): { result: FetchResult; ms: number } {
    const { now, random } = this.#world;
    host.requests++;
    const ms = host.latencyMs * (0.5 + random.next());
    const silent = { result: failure('headers-timeout', 'no answer'), ms: this.#options.headersMs };
    const { manner } = host;
    const since = this.#world.elapsedMs;
    const { offline } = this;
    if (offline && since >= offline.from && since < offline.until)
      return { result: OFFLINE[offline.how], ms: 1 };
    if (manner.kind === 'gone') return { result: failure('connect', 'refused'), ms };
    if (manner.kind === 'down' && since >= manner.fromMs && since < manner.fromMs + manner.forMs)
      return { result: failure('connect', 'refused'), ms };
    if (manner.kind === 'stalls' && since >= manner.fromMs && since < manner.fromMs + manner.forMs)
      return silent;
    if (manner.kind === 'limits') {
      host.recent = host.recent.filter(({ at }) => at > now - manner.windowMs);
      const counted = host.recent.filter((each) => !this.#options.byAddress || each.address === address);
      if (counted.length >= manner.count) {
        const waitS = Math.ceil((counted[0]!.at + manner.windowMs - now) / 1_000);
        return { result: response(429, manner.tells ? ['Retry-After', String(waitS)] : []), ms };
      }
      host.recent.push({ at: now, address });
    }
    if (manner.kind === 'bans') {
      if (host.answered === manner.afterPages && host.bannedUntil === 0)
        host.bannedUntil = now + manner.forMs;
      if (now < host.bannedUntil) return { result: response(403), ms };
    }
    host.answered++;
    return url.endsWith('/robots.txt') ? { result: this.#robots(host), ms } : this.#page(url, ms, silent);
  }

  #robots(host: SimHost): FetchResult {
    if (host.robots === 'absent') return response(404);
    if (host.robots === 'fails' && host.answered <= 2) return response(503);
    if (host.robots === 'forbids')
      return response(200, TEXT, Buffer.from('User-agent: *\nDisallow: /private/\n'));
    if (host.robots === 'delays')
      return response(200, TEXT, Buffer.from('User-agent: *\nCrawl-delay: 0.5\n'));
    const other = this.hosts[0]!;
    if (host.robots === 'elsewhere' && other !== host)
      return response(301, ['Location', `http://${other.name}/robots.txt`]);
    return response(200, TEXT, Buffer.from('User-agent: *\nDisallow: /cart\n'));
  }

  #page(
    url: string,
    ms: number,
    silent: { result: FetchResult; ms: number },
  ): { result: FetchResult; ms: number } {
    const page = this.pages.get(url);
    const kind = page?.kind ?? 'missing';
    if (kind === 'missing') return { result: response(404), ms };
    if (kind === 'forbidden') return { result: response(403), ms };
    if (kind === '503' || kind === '500') return { result: response(Number(kind)), ms };
    if (kind === 'reset') return { result: failure('reset', 'the connection broke'), ms };
    if (kind === 'timeout') return silent;
    if (kind === 'redirect') return { result: response(301, ['Location', page!.to]), ms };
    if (kind === 'flaky' && page!.failsLeft > 0) {
      page!.failsLeft--;
      return { result: response(502), ms };
    }
    if (page!.body.length === 0) page!.body = bodyOf(page!);
    return { result: response(200, HTML, page!.body), ms };
  }
}

/** Less than most jobs ask for, so that several addresses are of use. */
const LIMITS_ADDRESSES: Manner = { kind: 'limits', count: 3, windowMs: 1_000, tells: false };

const NOTHING: Buffer = Buffer.alloc(0);
const HTTP = 'http://';
const TEXT = ['Content-Type', 'text/plain'];
const HTML = ['Content-Type', 'text/html; charset=utf-8'];

/** Of the URLs of these sites, all of which begin alike: a run looks at some thousand of them. */
export function hostIn(url: string): string {
  return url.slice(HTTP.length, url.indexOf('/', HTTP.length));
}

function bodyOf({ url, links }: SimPage): Buffer {
  const anchors = links.map((link) => `<a href="${link}">more</a>`).join('\n');
  return Buffer.from(`<html><body><h1>The page at ${url}</h1>\n${anchors}</body></html>`);
}

function response(status: number, rawHeaders: string[] = [], body: Buffer = NOTHING): FetchResult {
  const about = { status, statusText: '', rawHeaders, wireBytes: body.length };
  return { kind: 'response', ...about, wireBody: body, body };
}

function failure(code: FailureCode, detail: string): FetchResult {
  return { kind: 'failure', code, detail, bytes: 0 };
}

/** How requests fail while nothing can be reached. */
const OFFLINE = {
  network: failure('connect', 'the connection failed (ENETUNREACH)'),
  names: failure('dns', 'the name was not resolved (EAI_AGAIN)'),
};
