import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';

interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Plain node:http: nothing is decoded or followed behind the test's back. */
export function get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      );
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end();
  });
}

export function linksOf(html: string, base: string): string[] {
  return [...html.matchAll(/<a\b[^>]*?href="([^"]+)"/g)]
    .map((match) => new URL(match[1]!.replaceAll('&amp;', '&'), base))
    .filter((url) => url.origin === new URL(base).origin)
    .map((url) => url.pathname + url.search);
}

/** Status by path of every link that the shop's robots.txt permits, retried when refused; 0 for those it forbids. */
export async function crawl(url: string): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  const queue = ['/'];
  const skipped = new Set<string>();
  while (queue.length > 0) {
    const path = queue.pop()!;
    if (seen.has(path)) continue;
    if (path.startsWith('/admin/') || path.startsWith('/cart')) {
      skipped.add(path);
      continue;
    }
    let reply = await get(url.slice(0, -1) + path);
    for (let again = 0; again < 2 && (reply.status >= 500 || reply.status === 429); again++) {
      reply = await get(url.slice(0, -1) + path);
    }
    seen.set(path, reply.status);
    if (reply.headers.location !== undefined) queue.push(reply.headers.location);
    if (reply.status === 200) queue.push(...linksOf(reply.body.toString(), new URL(path, url).href));
  }
  for (const path of skipped) seen.set(path, 0);
  return seen;
}
