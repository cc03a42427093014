import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TreeSite {
  url: string;
  /** Everything that a crawl can find, robots.txt aside. */
  urls: number;
  log: string[];
  close(): Promise<void>;
}

/**
 * A site on which every page is found from one other page only, at a depth of its own: whoever crawls it, in whatever
 * order, must come to the same result. Some links are dead, some lead on, some are forbidden.
 */
export async function startTreeSite(pages: number): Promise<TreeSite> {
  const log: string[] = [];
  const branches: Record<string, (index: number) => boolean> = {
    missing: (index) => index % 10 === 7,
    moved: (index) => index % 10 === 3,
    private: (index) => index % 25 === 1,
  };
  const pathOf = (index: number) => (index === 0 ? '/' : `/item/${index}`);
  const linksOf = (index: number) => [
    ...[0, Math.floor((index - 1) / 2), 2 * index + 1, 2 * index + 2]
      .filter((target) => target >= 0 && target < pages)
      .map(pathOf),
    ...Object.keys(branches)
      .filter((name) => branches[name]!(index))
      .map((name) => `/${name}/${index}`),
  ];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    log.push(path);
    const [, kind = '', number] = /^\/(\w*)(?:\/(\d+))?$/.exec(path) ?? [];
    const index = Number(number ?? 0);
    if (path === '/robots.txt') return void response.end('User-agent: *\nDisallow: /private/\n');
    if (kind === 'moved') return void response.writeHead(302, { location: `/landing/${index}` }).end();
    if (kind === 'missing' || path === '/favicon.ico') return void response.writeHead(404).end();
    const links = kind === 'landing' ? ['/'] : linksOf(index);
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(
      `<!doctype html><title>${kind} ${index}</title><h1>Thing ${index}</h1><p class="price">${index},50 €</p>` +
        `<p class="about">Größe ${index * 3} – ${'so it is. '.repeat(index % 30)}</p>` +
        links.map((target) => `<a href="${target}">${target}</a>`).join('\n'),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const all = Array.from({ length: pages }, (_, index) => index);
  const count = (name: string) => all.filter(branches[name]!).length;
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    // What has moved is a task, and so is where it has moved to.
    urls: pages + count('missing') + 2 * count('moved') + count('private'),
    log,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
