import { FETCHER_KINDS } from '../escalation/escalation.ts';
import { LIMITS } from '../limits.ts';
import { isDataDeeper } from '../values/nesting.ts';
import { WIRE_VERSION, WORKER_KINDS } from './batch.ts';
import {
  checkJar,
  demand,
  type Fields,
  isCount,
  isHex,
  isHttpUrl,
  isList,
  isNameOrNull,
  isObject,
  isText,
  isTextOrNull,
  isTime,
  NAME_LENGTH_MAX,
  problemOf,
} from './shape.ts';

/**
 * Whether a batch from another machine is one. The spec of its job is taken as it is, since the coordinator has checked
 * it with the schema of jobs; code is only taken from a bundle that is named by its hash.
 */

const TASKS_MAX = 100_000;
const BUDGET_MS_MAX = 24 * 3_600_000;
const BUNDLE_KEY = /^bundles\/[0-9a-f]{64}\.mjs$/;
/** Folders of their own for pages and packed media. */
const ARCHIVE_KEY = /^warc(\/[\w.-]+)+$/;
const PACK_KEY = /^shards(\/[\w.-]+)+$/;
const HEADER_STYLES: readonly unknown[] = ['full', 'simple', 'minimal'];

/** Says what is wrong with a batch, or null when nothing is. */
export function batchProblem(batch: unknown): string | null {
  return problemOf(() => checkBatch(batch));
}

function checkBatch(batch: unknown): void {
  demand(isObject(batch), 'it is not an object');
  demand(batch.version === WIRE_VERSION, 'its version is another');
  demand(isCount(batch.id), 'its number');
  demand(
    WORKER_KINDS.some((kind) => kind === batch.needs),
    'what it needs',
  );
  demand(isCount(batch.budgetMs) && batch.budgetMs <= BUDGET_MS_MAX, 'its time');
  demand(isText(batch.archiveKey, NAME_LENGTH_MAX) && isKey(batch.archiveKey, ARCHIVE_KEY), 'its archive');
  demand(isText(batch.packKey, NAME_LENGTH_MAX) && isKey(batch.packKey, PACK_KEY), 'its pack');
  checkJob(batch.job);
  demand(isList(batch.permits, TASKS_MAX), 'its permits');
  for (const permit of batch.permits) checkPermit(permit);
  const proxies = checkSecrets(batch);
  const context = { permits: batch.permits.length, proxies };
  demand(isList(batch.robots, TASKS_MAX), 'its robots.txt files');
  for (const robots of batch.robots) checkRobots(robots, context);
  demand(isList(batch.tasks, TASKS_MAX), 'its tasks');
  const ids = new Set<unknown>();
  for (const task of batch.tasks) {
    checkTask(task, context);
    ids.add((task as Fields).id);
  }
  demand(ids.size === batch.tasks.length, 'two tasks with one number');
}

/** A name of the blob store that stays in its folder. */
function isKey(key: string, shape: RegExp): boolean {
  return shape.test(key) && !key.split('/').some((part) => part === '.' || part === '..');
}

function checkJob(job: unknown): void {
  demand(isObject(job) && isCount(job.id) && isText(job.name, NAME_LENGTH_MAX), 'its job');
  demand(isText(job.specHash) && isText(job.epoch, NAME_LENGTH_MAX), 'its job');
  demand(isObject(job.spec) && isList(job.spec.routes) && isList(job.spec.follow), 'the spec of its job');
  demand(job.bundle === null || (isText(job.bundle) && BUNDLE_KEY.test(job.bundle)), 'the code of its job');
}

function checkPermit(permit: unknown): void {
  demand(isObject(permit) && isText(permit.host, NAME_LENGTH_MAX), 'a permit');
  demand(isTime(permit.startAt) && isTime(permit.endAt) && isTime(permit.gapMs), 'the times of a permit');
  demand(isCount(permit.parallel) && permit.parallel > 0, 'the connections of a permit');
  demand(permit.jitter === undefined || isTime(permit.jitter), 'the jitter of a permit');
  checkAddresses(permit.addresses);
}

function checkAddresses(addresses: unknown): void {
  if (addresses === undefined) return;
  demand(isObject(addresses) && isObject(addresses.gapsMs), 'the addresses of a permit');
  const gaps = [addresses.otherMs, ...Object.values(addresses.gapsMs)];
  demand(gaps.every(isTime), 'the addresses of a permit');
  demand(isCount(addresses.lanes) && addresses.lanes > 0, 'the addresses of a permit');
  demand(addresses.knownPage === null || isHttpUrl(addresses.knownPage), 'the addresses of a permit');
}

/** How many proxies there are. */
function checkSecrets(batch: Fields): number {
  const { proxies = [], apiKey, secretHeaders, loginState, cookies = [] } = batch;
  demand(isList(proxies, TASKS_MAX), 'its proxies');
  for (const proxy of proxies)
    demand(
      isObject(proxy) && isText(proxy.id, NAME_LENGTH_MAX) && isText(proxy.url, NAME_LENGTH_MAX),
      'a proxy',
    );
  demand(apiKey === undefined || isText(apiKey), 'its key');
  demand(loginState === undefined || isText(loginState, LIMITS.loginStateBytesMax), 'its login');
  demand(isList(cookies), 'its cookies');
  for (const jar of cookies) checkJar(jar);
  if (secretHeaders === undefined) return proxies.length;
  demand(isObject(secretHeaders), 'its secret headers');
  for (const headers of Object.values(secretHeaders))
    demand(isObject(headers) && Object.values(headers).every((value) => isText(value)), 'its secret headers');
  return proxies.length;
}

interface Counts {
  permits: number;
  proxies: number;
}

function checkRobots(robots: unknown, counts: Counts): void {
  demand(isObject(robots) && isHttpUrl(robots.origin) && isHttpUrl(robots.url), 'a robots.txt');
  demand(isIndex(robots.permit, counts.permits), 'the permit of a robots.txt');
  demand(robots.for === undefined || isIndex(robots.for, counts.permits), 'the permit of a robots.txt');
  checkThrough(robots.through, counts);
}

function checkTask(task: unknown, counts: Counts): void {
  demand(isObject(task) && isCount(task.id) && isIndex(task.permit, counts.permits), 'a task');
  demand(isHttpUrl(task.url), 'a task that is not an http or https URL');
  demand(isCount(task.depth) && isCount(task.attempt) && isCount(task.hops), 'the counts of a task');
  demand(task.throttles === undefined || isCount(task.throttles), 'the counts of a task');
  demand(isNameOrNull(task.route), 'the route of a task');
  demand(task.meta === null || isObject(task.meta), 'the data of a task');
  demand(!isDataDeeper(task.meta, LIMITS.dataNestingMax + 1), 'the data of a task');
  demand(task.referrer === undefined || isHttpUrl(task.referrer), 'the referrer of a task');
  checkVisit(task.lastVisit);
  checkMethod(task.fetchMethod);
  checkThrough(task.through, counts);
}

function checkVisit(visit: unknown): void {
  if (visit === null) return;
  demand(isObject(visit) && isHex(visit.sha256, 64), 'the last visit of a task');
  demand(isTextOrNull(visit.etag) && isTextOrNull(visit.lastModified), 'the last visit of a task');
  const { archived } = visit;
  if (archived === undefined) return;
  demand(isObject(archived) && isTime(archived.at) && isHex(archived.sha256, 64), 'the last visit of a task');
}

function checkMethod(method: unknown): void {
  if (method === undefined) return;
  demand(isObject(method) && isCount(method.level), 'how a task is fetched');
  demand(
    FETCHER_KINDS.some((kind) => kind === method.fetcher),
    'how a task is fetched',
  );
  demand(HEADER_STYLES.includes(method.headers), 'the headers of a task');
  demand(isNameOrNull(method.identity) && isNameOrNull(method.pool), 'the identity or pool of a task');
}

function checkThrough(through: unknown, { proxies }: Counts): void {
  if (through === undefined) return;
  demand(isObject(through) && isList(through.among), 'the proxies of a task');
  demand(
    through.among.length > 0 && through.among.every((index) => isIndex(index, proxies)),
    'the proxies of a task',
  );
  demand(through.perWorker === undefined || through.perWorker === true, 'the proxies of a task');
}

function isIndex(value: unknown, length: number): boolean {
  return isCount(value) && value < length;
}
