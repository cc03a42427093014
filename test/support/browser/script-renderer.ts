import vm from 'node:vm';
import type { Fetcher, FetchRequest, FetchResult, Shot } from '../../../src/ports/fetcher.ts';
import { CLIENT_SCRIPT } from '../../../src/sites/shop/scripted-pages.ts';

/** A browser that knows one application: runs the script of the demo shop on a document that can do what it asks. */
interface ScriptRenderer extends Fetcher {
  asked: FetchRequest[];
  prepared: number;
}

export const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

export function openScriptRenderer(
  answer?: (request: FetchRequest) => FetchResult | null | Promise<FetchResult | null>,
): ScriptRenderer {
  const renderer: ScriptRenderer = {
    asked: [],
    prepared: 0,
    async prepare() {
      renderer.prepared++;
    },
    async fetch(request) {
      renderer.asked.push(request);
      request.onSent();
      return (await answer?.(request)) ?? render(request);
    },
    async close() {},
  };
  return renderer;
}

async function render(request: FetchRequest): Promise<FetchResult> {
  const page = new URL(request.url);
  const response = await fetch(page, { redirect: 'manual' });
  const rawHeaders = [...response.headers].flat();
  const shell = Buffer.from(await response.arrayBuffer());
  const body = response.status === 200 ? Buffer.from(await run(page)) : shell;
  return {
    kind: 'response',
    status: response.status,
    statusText: response.statusText,
    rawHeaders,
    body,
    wireBody: body,
    wireBytes: shell.length,
    rendered: { shots: request.render?.screenshot ? [shotOf(page)] : [], captured: {} },
  };
}

/** Different for each page. */
function shotOf({ pathname }: URL): Shot {
  return { kind: 'screenshot', type: 'image/png', bytes: Buffer.concat([PNG, Buffer.from(pathname)]) };
}

async function run({ origin, pathname, search }: URL): Promise<string> {
  const head: string[] = [];
  const app = { innerHTML: '' };
  const { promise: drawn, resolve } = Promise.withResolvers<void>();
  const document = {
    title: '',
    head: {
      insertAdjacentHTML: (_: string, html: string) => head.push(html),
      append: ({ type, textContent }: Record<string, string>) =>
        head.push(`<script type="${type}">${textContent}</script>`),
    },
    createElement: () => ({}),
    getElementById: () =>
      Object.defineProperty({}, 'innerHTML', {
        set: (html: string) => {
          app.innerHTML = html;
          resolve();
        },
      }),
  };
  const location = { pathname, search };
  vm.runInNewContext(CLIENT_SCRIPT, {
    document,
    location,
    fetch: (path: string) => fetch(origin + path),
  });
  await drawn;
  return `<!doctype html><html><head><title>${document.title}</title>${head.join('')}</head><body><div id="app">${app.innerHTML}</div></body></html>`;
}
