import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * A remote scraping API in both manners: `GET /get?key=…&url=…`, and `POST /lists` with `GET /jobs/…`, or with a message
 * to the URL that the list has as `callback`.
 */
export interface ScrapingApi {
  url: string;
  /** URLs that were fetched for us. */
  fetched: string[];
  /** Lists as they were handed in. */
  lists: { urls: string[]; key: unknown; callback?: string }[];
  polls: number;
  /** Decides what becomes of a URL; a page by default. */
  answer: (url: string) => { status: number; body: string };
  /** What is sent to the callback of a list, and whether before the list is answered; nothing when absent. */
  calls: ((id: string, results: object[]) => { body: unknown; early?: boolean }) | null;
  /** Statuses that callbacks were answered with. */
  called: number[];
  /** What the API itself says instead, while set. */
  refuses: number | null;
  close(): Promise<void>;
}

export async function openScrapingApi(key: string): Promise<ScrapingApi> {
  const jobs = new Map<string, { urls: string[]; polls: number }>();
  const api: ScrapingApi = {
    url: '',
    fetched: [],
    lists: [],
    polls: 0,
    answer: (url) => ({ status: 200, body: `<title>${url}</title>` }),
    calls: null,
    called: [],
    refuses: null,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const json = (response: ServerResponse, value: unknown, status = 200) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
  const fetchFor = (url: string) => {
    api.fetched.push(url);
    return api.answer(url);
  };
  const resultOf = (url: string) => {
    const { status, body } = fetchFor(url);
    const headers = { 'content-type': 'text/html; charset=latin1' };
    return { url, statusCode: status, headers, body, cost: 2 };
  };
  const send = async (to: string, body: unknown) => {
    const answer = await fetch(to, { method: 'POST', body: JSON.stringify(body) });
    api.called.push(answer.status);
  };
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', api.url);
    if (api.refuses !== null) return void response.writeHead(api.refuses).end('no');
    if (pathname === '/get') {
      if (searchParams.get('key') !== key) return void response.writeHead(401).end('who are you?');
      const { status, body } = fetchFor(searchParams.get('url') ?? '');
      response.writeHead(200, {
        'content-type': 'text/html',
        'x-site-status': String(status),
        'x-cost': '5',
      });
      response.end(body);
    } else if (pathname === '/lists') {
      if (request.headers['x-key'] !== key) return void response.writeHead(401).end();
      const list = JSON.parse(await text(request)) as ScrapingApi['lists'][number];
      api.lists.push(list);
      const id = `job-${api.lists.length}`;
      jobs.set(id, { urls: list.urls, polls: 0 });
      const call = list.callback ? api.calls?.(id, list.urls.map(resultOf)) : undefined;
      if (call?.early) await send(list.callback!, call.body);
      json(response, { job: { id, statusUrl: `${api.url}/jobs/${id}` } });
      if (call && !call.early) await send(list.callback!, call.body);
    } else {
      const job = jobs.get(pathname.slice('/jobs/'.length));
      api.polls++;
      if (!job || request.headers['x-key'] !== key) return void response.writeHead(404).end();
      if (++job.polls < 2) return void json(response, { status: 'running' });
      json(response, { status: 'finished', results: job.urls.map(resultOf) });
    }
  }
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  api.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return api;
}
