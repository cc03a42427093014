import { hash, X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browser } from '../../../../src/core/job-schema/browser.ts';
import { type BrowserFetcher, openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { findChromium } from '../../../../src/fetch/browser/process/find-chromium.ts';
import { codeOf, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import { temporaryFolder } from '../../../support/fixtures.ts';
import {
  openRawOrigin,
  type RawOrigin,
  reply,
  sends,
  TEST_CERT,
} from '../../../support/servers/raw-origin.ts';

/** Pages over TLS: the filtering proxy carries what it cannot read, and Chromium decides whom it trusts. */

const PAGE = `<!doctype html><p id=p></p><script>
  fetch('/data.json').then((answer) => answer.text()).then((text) => { p.textContent = text + location.protocol; });
</script>`;
const handlers = {
  '/': sends(reply('200 OK', ['Content-Type: text/html'], PAGE)),
  '/data.json': sends(reply('200 OK', ['Content-Type: application/json'], '"data"')),
};

let origin: RawOrigin;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const fetchers: BrowserFetcher[] = [];
beforeAll(async () => {
  folder = await temporaryFolder();
  origin = await openRawOrigin(handlers, { secure: true });
});
afterAll(async () => {
  for (const fetcher of fetchers) await fetcher.close();
  await origin.close();
  await folder.remove();
});

async function open(path: string): Promise<BrowserFetcher> {
  const fetcher = await openBrowserFetcher({ clock, isPublicAddress, browser: { path } });
  fetchers.push(fetcher);
  return fetcher;
}

/** A Chromium that trusts one key more, as an operator makes it: SEINE_BROWSER may name a script. */
async function trusting(certificate: string): Promise<string> {
  const { path, environment } = await findChromium('bundled');
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  const variables = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`);
  const flag = `--ignore-certificate-errors-spki-list=${hash('sha256', key, 'base64')}`;
  const script = join(folder.dir, 'chromium');
  await writeFile(script, ['#!/bin/sh', ...variables, `exec '${path}' "$@" '${flag}'`].join('\n'), {
    mode: 0o755,
  });
  return script;
}

describe('a page over TLS', () => {
  test('with a certificate that nobody vouches for fails as such, and no request of HTTP is sent', async () => {
    const fetcher = await open('bundled');
    const answer = await fetcher.fetch(requestOf(origin.url));
    expect(answer).toMatchObject({ code: 'tls', detail: expect.stringContaining('CERT_AUTHORITY_INVALID') });
    expect(origin.requests).toEqual([]);
    const plain = await openRawOrigin(
      {},
      { onConnection: (socket) => void socket.once('data', () => socket.write('HTTP/1.1 400 Bad\r\n\r\n')) },
    );
    expect(codeOf(await fetcher.fetch(requestOf(plain.url.replace('http', 'https'))))).toBe('tls');
    await plain.close();
    const silent = await openRawOrigin({}, { onConnection: () => {} });
    const timeouts = { connectMs: 500, headersMs: 500 };
    const stalled = await fetcher.fetch(requestOf(silent.url.replace('http', 'https'), { timeouts }));
    expect(codeOf(stalled)).toMatch(/-timeout$/);
    await silent.close();
  });

  test('with one that is trusted is shown, with what its scripts ask for', async () => {
    const fetcher = await open(await trusting(TEST_CERT));
    const { status, body, wireBytes } = responseOf(
      await fetcher.fetch(
        requestOf(origin.url, { render: browser.parse({ actions: [{ waitFor: '#p:not(:empty)' }] }) }),
      ),
    );
    expect(status).toBe(200);
    expect(body.toString()).toContain('"data"https:');
    expect(wireBytes).toBeGreaterThan(0);
    expect(origin.requests.map(({ path }) => path)).toEqual(expect.arrayContaining(['/', '/data.json']));
  });
});
