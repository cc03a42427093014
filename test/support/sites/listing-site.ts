import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

interface ListingAnswer {
  status?: number;
  type?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

export interface ListingSite {
  /** Without a slash at the end. */
  origin: string;
  /** Paths asked for, in order. */
  log: string[];
  close(): Promise<void>;
}

/** A site that answers by path; every other path is a page. `{origin}` in a text stands for the site. */
export async function startListingSite(answers: Record<string, ListingAnswer>): Promise<ListingSite> {
  const log: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    log.push(path);
    const answer = answers[path] ?? { type: 'text/html', body: `<title>${path}</title>` };
    const { status = 200, type = 'application/xml', headers = {}, body = '' } = answer;
    const origin = `http://${request.headers.host}`;
    response.writeHead(status, { 'content-type': type, ...headers });
    response.end(typeof body === 'string' ? body.replaceAll('{origin}', origin) : body);
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    log,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
