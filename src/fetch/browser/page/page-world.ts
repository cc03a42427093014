import type { CDPSession } from 'playwright-core';

/** Evaluates in a world of its own: scripts of the page cannot change what its functions do. */
export async function evaluateApart(cdp: CDPSession, frameId: string, expression: string): Promise<unknown> {
  const { executionContextId } = await cdp.send('Page.createIsolatedWorld', { frameId, worldName: 'seine' });
  const { result } = await cdp.send('Runtime.evaluate', {
    contextId: executionContextId,
    expression,
    returnByValue: true,
  });
  return result.value;
}

/** Runs in the browser. */
const SERIALIZE = `function (url, charsMax) {
  const root = document.documentElement;
  if (root === null) return '';
  const bare = (text) => text.split('#', 1)[0];
  if (bare(document.baseURI) !== bare(url) && document.querySelector('base[href]') === null && document.head) {
    const base = document.createElement('base');
    base.setAttribute('href', document.baseURI);
    document.head.prepend(base);
  }
  const doctype = document.doctype === null ? '' : new XMLSerializer().serializeToString(document.doctype);
  const html = doctype + root.outerHTML;
  return html.length > charsMax ? null : html;
}`;

/**
 * The page as HTML; null when it is too large. A page that has come to another address gets a `base`, so that its links
 * lead where they did.
 */
export async function readHtml(
  cdp: CDPSession,
  frameId: string,
  { url, bytesMax }: { url: string; bytesMax: number },
): Promise<Buffer | null> {
  const call = `(${SERIALIZE})(${JSON.stringify(url)}, ${bytesMax})`;
  const html = await evaluateApart(cdp, frameId, call);
  if (typeof html !== 'string') return null;
  const bytes = Buffer.from(html);
  return bytes.length > bytesMax ? null : bytes;
}
