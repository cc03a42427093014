import { expect, test } from 'vitest';
import { parseJob } from '../../../src/job-file/parse-job.ts';

const parse = (headers: Record<string, string>) =>
  parseJob({ sources: ['https://a.example/'], identity: { headers } }, 'job.json', 'test');

test.each([
  'Authorization',
  'authorization',
  'Proxy-Authorization',
  'Cookie',
  'X-Api-Key',
  'ApiKey',
  'api_key',
  'X-Auth-Token',
  'PRIVATE-TOKEN',
  'X-Amz-Security-Token',
  'Ocp-Apim-Subscription-Key',
])('a job with the header %s for every host is refused', async (name) => {
  await expect(parse({ [name]: 'x' })).rejects.toThrow(
    `identity.headers: ${name} would be sent to every host of the job`,
  );
});

test.each(['Accept', 'X-Requested-With', 'DNT', 'Referer', 'X-Author', 'X-Keyboard', 'X-Tokenizer'])(
  'the header %s may go to every host',
  async (name) => {
    expect((await parse({ [name]: 'x' })).spec.identity.headers).toEqual({ [name]: 'x' });
  },
);

test.each([
  [
    { type: { into: '#q', text: 'x' } },
    /actions\.0\.type: expected a text, got an object.*actions\.0\.text: is missing/,
  ],
  [{ scroll: 'down' }, /actions\.0\.scroll: expected "end" or a whole number, got "down"/],
  [{ click: '#b', optional: 'yes' }, /actions\.0\.optional: expected true or false, got "yes"/],
])('what is wrong with an action is said of its field: %j', async (action, message) => {
  const routes = [{ name: 'p', fetcher: 'browser', browser: { actions: [action] } }];
  const parsed = parseJob({ sources: ['https://a.example/'], routes }, 'job.json', 'test');
  await expect(parsed).rejects.toThrow(message);
});

test('a route may use a proxy pool that the job has, none, or one by default, and no other', async () => {
  const proxies = { pools: { home: { from: { file: 'proxies.txt' } } } };
  const parsed = (job: object) => parseJob({ sources: ['https://a.example/'], ...job }, 'job.json', 'test');
  const route = (more: object) => ({ routes: [{ name: 'p', ...more }] });
  for (const job of [route({}), { ...route({ proxy: 'home' }), proxies }, { ...route({}), proxies }])
    expect((await parsed(job)).spec.routes).toHaveLength(1);
  await expect(parsed({ ...route({ proxy: 'hom' }), proxies })).rejects.toThrow(
    "route 'p' uses the unknown proxy pool 'hom'",
  );
  await expect(parsed(route({ proxy: 'home' }))).rejects.toThrow('unknown proxy pool');
});

test.each([
  [
    [{ urls: ['https://a.example/'] }],
    'sources.0: expected a text, or an object with file, sitemap, query or websocket, got one with urls',
  ],
  [
    { urls: [] },
    'sources: expected a text, or an object with file, sitemap, query or websocket, got one with urls',
  ],
  [
    ['https://a.example/', {}],
    'sources.1: expected a text, or an object with file, sitemap, query or websocket, got an empty one',
  ],
  [[{ files: 'a.csv' }], 'got one with files; did you mean file?'],
  [[{ file: 'a.csv', formt: 'csv' }], 'sources.0.formt: unknown field; did you mean format?'],
  [['https://a.example/', 5], 'sources.1: expected a text or an object, got 5'],
  [5, 'sources: expected a text, an object or a list, got 5'],
])('a mistake in the sources names the place and what would be right: %j', async (sources, message) => {
  await expect(parseJob({ sources }, 'job.json', 'test')).rejects.toThrow(message);
});

test.each([
  [{ browser: { timezone: 'Europe/Berlin' } }, 'browser: unknown field; it belongs into a route'],
  [
    { routes: [{ name: 'p', politeness: { rate: 2 } }] },
    "route 'p': politeness: unknown field; it belongs to the job, not into a route",
  ],
  [{ routes: [{ name: 'p', fetchr: 'browser' }] }, "route 'p': fetchr: unknown field; did you mean fetcher?"],
])('a field in the wrong place is told where it belongs: %j', async (job, message) => {
  await expect(parseJob({ sources: 'https://a.example/', ...job }, 'job.json', 'test')).rejects.toThrow(
    message,
  );
});
test.each<[string, object, object]>([
  ['a rate', { rate: 'max' }, {}],
  ['`politeness.adaptive` is off', { adaptive: false }, {}],
  ['the job has proxies', {}, { proxies: { pools: { home: { from: { file: 'proxies.txt' } } } } }],
])(
  'paces by address are off unless the job says so, and refused where they cannot work: %s',
  async (_, politeness, more) => {
    const parsed = (perAddress: boolean) =>
      parseJob(
        { sources: ['https://a.example/'], politeness: { ...politeness, perAddress }, ...more },
        'job.json',
        'test',
      );
    await expect(parsed(true)).rejects.toThrow('`politeness.perAddress`');
    expect((await parsed(false)).spec.politeness.perAddress).toBe(false);
    const plain = await parseJob({ sources: ['https://a.example/'] }, 'job.json', 'test');
    expect(plain.spec.politeness.perAddress).toBe(false);
  },
);
