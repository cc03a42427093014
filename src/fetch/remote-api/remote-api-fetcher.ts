import { messageOf } from '../../core/errors.ts';
import type { FailureCode } from '../../core/failures.ts';
import type { ApiSpec } from '../../core/job-schema/remote-api.ts';
import { isLocalName } from '../../core/proxies/proxy.ts';
import { type AddressGuard, makeAddressGuard } from '../../core/url/address-guard.ts';
import type { Logger } from '../../ports/ambient.ts';
import type {
  CallbackSettings,
  Fetcher,
  FetchRequest,
  FetchResponse,
  FetchResult,
} from '../../ports/fetcher.ts';
import { type HttpFetcherOptions, openHttpFetcher } from '../http/http-fetcher.ts';
import { failure } from '../network/check-request.ts';
import { literalOf, privateAddress } from '../network/dial.ts';
import type { CallbackReceiver } from './callback-receiver.ts';
import type { ApiBatches } from './remote-api-batch.ts';
import { fillTemplate, headersFor, PRIVATE_API } from './remote-api-request.ts';

/** Failures that are the page's own, however it was fetched; all others are the API's. */
const OF_THE_PAGE: ReadonlySet<FailureCode> = new Set(['too-large', 'bad-encoding', 'internal']);

export interface RemoteApiOptions extends HttpFetcherOptions {
  /** Where to listen for APIs that send pages by themselves; such pages are asked for when absent. */
  apiCallbacks?: CallbackSettings | undefined;
  logger?: Logger | undefined;
}

/** Has a remote scraping API fetch pages, from addresses of its own. */
export function openRemoteApiFetcher(options: RemoteApiOptions): Fetcher {
  return new RemoteApiFetcher(options);
}

class RemoteApiFetcher implements Fetcher {
  readonly #http: Fetcher;
  readonly #guard: AddressGuard;
  readonly #lookup: RemoteApiOptions['lookup'];
  readonly #callbacks: CallbackSettings | null;
  readonly #logger: Logger | null;
  /** By whether the API may have a private address. */
  readonly #batches = new Map<boolean, Promise<ApiBatches>>();
  #receiver: Promise<CallbackReceiver | null> | null = null;

  constructor(options: RemoteApiOptions) {
    this.#http = openHttpFetcher(options);
    this.#guard = makeAddressGuard(options.isPublicAddress, options.forbidsPrivate ?? false);
    this.#lookup = options.lookup;
    this.#callbacks = options.apiCallbacks ?? null;
    this.#logger = options.logger ?? null;
  }

  async fetch(request: FetchRequest): Promise<FetchResult> {
    const { api } = request;
    const target = URL.parse(request.url);
    if (!api || target === null || !/^https?:$/.test(target.protocol))
      return failure('internal', 'the request has no settings for the remote scraping API');
    // The API has proxies of its own; one of ours would be left out without a word.
    if (request.proxy) return failure('proxy', 'the remote scraping API cannot be used through a proxy');
    if (this.#isPrivate(target.hostname, request.allowPrivate))
      return failure('private-address', privateAddress().message);
    if (api.spec.batch === undefined) return this.#get(request, api.spec, api.key);
    return (await this.#batchesFor(request)).fetch(request, api.spec, api.key);
  }

  #batchesFor({ privateServices = true }: FetchRequest): Promise<ApiBatches> {
    const isAllowed = this.#guard.services(privateServices);
    const opened =
      this.#batches.get(privateServices) ??
      import('./remote-api-batch.ts').then(
        ({ ApiBatches: Batches }) => new Batches(() => this.#listen(), isAllowed, this.#lookup),
      );
    this.#batches.set(privateServices, opened);
    return opened;
  }

  async close(): Promise<void> {
    for (const batches of this.#batches.values()) (await batches).close();
    await (await this.#receiver)?.close();
    await this.#http.close();
  }

  /** Where no port can be opened, pages are asked for. */
  #listen(): Promise<CallbackReceiver | null> {
    const settings = this.#callbacks;
    if (settings === null) return Promise.resolve(null);
    this.#receiver ??= import('./callback-receiver.ts')
      .then(({ openCallbackReceiver }) => openCallbackReceiver(settings))
      .catch((error: unknown) => {
        const place = `${settings.host}:${settings.port}`;
        this.#logger?.warn(
          `cannot listen at ${place} for callbacks of the scraping API: ${messageOf(error)}`,
        );
        return null;
      });
    return this.#receiver;
  }

  async #get(request: FetchRequest, spec: ApiSpec, key: string | null): Promise<FetchResult> {
    const { proxy: _, api: __, sinkFor, ...rest } = request;
    const result = await this.#http.fetch({
      ...rest,
      url: fillTemplate(spec.url!, { url: request.url, key }),
      headers: headersFor(spec, key),
      parallel: spec.parallel,
      // The guard has a rule of its own for what a job names.
      allowPrivate: this.#guard.services(request.privateServices) === null,
      ...(sinkFor
        ? {
            sinkFor: (head) => {
              const status = siteStatus(spec, head.status, head.rawHeaders);
              return status !== null && status < 300 ? sinkFor({ ...head, status }) : null;
            },
          }
        : {}),
    });
    if (result.kind === 'response') return siteResponse(spec, result);
    if (result.kind === 'aborted' || OF_THE_PAGE.has(result.code)) return result;
    const detail = result.code === 'private-address' ? PRIVATE_API : `the API failed: ${result.detail}`;
    return failure('api', detail, result.bytes);
  }

  /** The API looks names up where nothing here can check the address. */
  #isPrivate(hostname: string, allowPrivate: boolean): boolean {
    const isAllowed = this.#guard.pages(allowPrivate);
    const literal = literalOf(hostname);
    if (isAllowed === null) return false;
    return literal === null ? isLocalName(hostname) : !isAllowed(literal);
  }
}

/** The status that the site gave; null when the API speaks of itself. */
function siteStatus(spec: ApiSpec, status: number, rawHeaders: string[]): number | null {
  const told = spec.statusHeader === undefined ? null : Number(headerAt(rawHeaders, spec.statusHeader));
  if (told !== null && Number.isInteger(told) && told >= 100 && told <= 599) return told;
  return spec.errors.includes(status) ? null : status;
}

function siteResponse(spec: ApiSpec, response: FetchResponse): FetchResult {
  const status = siteStatus(spec, response.status, response.rawHeaders);
  if (status === null)
    return failure('api', `the API answered with status ${response.status}`, response.wireBytes);
  const told =
    spec.costHeader === undefined ? Number.NaN : Number(headerAt(response.rawHeaders, spec.costHeader));
  return { ...response, status, cost: Number.isFinite(told) && told >= 0 ? told : spec.cost };
}

function headerAt(rawHeaders: string[], name: string): string | undefined {
  const wanted = name.toLowerCase();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]!.toLowerCase() === wanted) return rawHeaders[index + 1];
  }
  return undefined;
}
