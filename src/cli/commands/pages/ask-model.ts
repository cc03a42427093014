import { request } from 'undici';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { VERSION } from '../../../core/identity/identity.ts';
import { isLinkLocalAddress, isPublicAddress } from '../../../core/url/address.ts';
import { openGuardedConnections } from '../../../network/guarded-connections.ts';

/** Asks a language model that speaks like OpenAI's API. Where it is, and its key, only the operator says. */

interface ModelSettings {
  /** Up to and including the version: `https://api.example/v1`. */
  url: string;
  name: string;
  key: string | null;
  /** The operator refuses private addresses. */
  forbidsPrivate: boolean;
}

/** Models on own machines think for a while. */
const ANSWER_MS = 120_000;
const CONNECT_MS = 10_000;
/** Selectors take a few kilobytes. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** The text of the answer. Throws where there is none, in words that do not name the key. */
export async function askModel(
  { url, name, key, forbidsPrivate }: ModelSettings,
  messages: readonly { role: string; content: string }[],
): Promise<string> {
  const connections = openGuardedConnections({
    isAllowed: forbidsPrivate ? isPublicAddress : (ip) => !isLinkLocalAddress(ip),
    refused: (hostname) => new Error(`${hostname} has no address that may be called`),
    connectMs: CONNECT_MS,
    limits: { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS },
  });
  try {
    // Redirects are not followed: the key and the page are for this server.
    const { statusCode, body } = await request(`${url.replace(/\/+$/, '')}/chat/completions`, {
      method: 'POST',
      dispatcher: connections,
      signal: AbortSignal.timeout(ANSWER_MS),
      headers: {
        'content-type': 'application/json',
        'user-agent': `Seine/${VERSION}`,
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({ model: name, messages, temperature: 0 }),
    });
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer is over 1 MB');
      pieces.push(piece);
    }
    if (statusCode !== 200) throw new Error(`status ${statusCode}`);
    return contentOf(Buffer.concat(pieces).toString());
  } catch (error) {
    const reason =
      error instanceof Error && error.name === 'TimeoutError' ? 'no answer in time' : messageOf(error);
    throw new SeineError(`the model cannot be asked: ${reason}`, {
      hint: 'check SEINE_MODEL_URL, SEINE_MODEL_NAME and SEINE_MODEL_KEY, or leave out --model',
    });
  } finally {
    await connections.destroy();
  }
}

function contentOf(text: string): string {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error('the answer is not JSON');
  }
  const { choices } = (answer ?? {}) as { choices?: { message?: { content?: unknown } }[] };
  const content = Array.isArray(choices) ? choices[0]?.message?.content : undefined;
  if (typeof content !== 'string') throw new Error('the answer has no text');
  return content;
}
