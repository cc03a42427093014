import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SETTINGS } from '../../config/schema.ts';
import { SeineError } from '../../core/errors.ts';
import { isPublicAddress } from '../../core/url/address.ts';
import type { BrowserSettings, FetchRequest } from '../../ports/fetcher.ts';
import { systemClock } from '../../worker/batch/system-clock.ts';
import type { Finding } from './check.ts';

/** Only a browser makes the answer of it. */
const PAGE = '<!doctype html><p id="answer">?</p><script>answer.textContent = 6 * 7</script>';
const TIMEOUT_MS = 20_000;

/** Has Chromium show a page of this process, as workers do with those of the web. */
export async function checkBrowser(
  settings: BrowserSettings | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { findChromium } = await import('../../fetch/browser/process/find-chromium.ts');
  const { openBrowserFetcher } = await import('../../fetch/browser/browser-fetcher.ts');
  const { path, from } = await findChromium(settings?.path ?? null);
  const fetcher = await openBrowserFetcher({ clock: systemClock, isPublicAddress, browser: settings });
  const server = createServer((_, response) => response.setHeader('content-type', 'text/html').end(PAGE));
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const result = await fetcher.fetch(requestOf(`http://127.0.0.1:${port}/`, signal));
    if (result.kind !== 'response' || !result.body.includes('>42<'))
      throw new SeineError(
        `Chromium at ${path} cannot render a page: ${result.kind === 'failure' ? result.detail : 'its script did not run'}`,
        { hint: `install another Chromium and set ${SETTINGS.browserPath.env} to its path` },
      );
    return { detail: `Chromium at ${path} (${from}) renders pages and runs scripts` };
  } finally {
    await fetcher.close();
    server.closeAllConnections();
    server.close();
  }
}

function requestOf(url: string, signal: AbortSignal): FetchRequest {
  return {
    url,
    headers: {},
    timeouts: { connectMs: TIMEOUT_MS, headersMs: TIMEOUT_MS, bodyMs: TIMEOUT_MS, taskMs: TIMEOUT_MS },
    bodyBytesMax: 1024 * 1024,
    parallel: 1,
    allowPrivate: true,
    signal,
    onSent: () => true,
  };
}
