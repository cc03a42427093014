import { SeineError } from '../errors.ts';
import { LIMITS } from '../limits.ts';

/** Cookies and storage of a browser that somebody logged in with, as Playwright's `storageState` writes them. */
interface LoginState {
  /** Checked and written anew, without line breaks. */
  json: string;
  /** Values that must not be seen anywhere. */
  secrets: string[];
}

/** Values of cookies and storage that are looked for in messages; a state has dozens. */
const SECRETS_MAX = 1_000;
/** Shorter ones and plain words are settings, and stand in ordinary messages, too. */
const SECRET_LENGTH_MIN = 8;
const PLAIN = /^[a-z_ -]*$|^[\d.:-]*$/i;

/** Throws where it is no such state, and quotes nothing of it. */
export function parseLoginState(text: string): LoginState {
  if (text.length > LIMITS.loginStateBytesMax)
    throw new SeineError(`the login state is larger than ${LIMITS.loginStateBytesMax} bytes`, {
      hint: 'save it without the data of other sites',
    });
  const state = readState(text);
  const values = [
    ...state.cookies.map(({ value }) => value),
    ...state.origins.flatMap(({ localStorage }) => (localStorage ?? []).map(({ value }) => value)),
  ];
  const json = JSON.stringify(state);
  const secrets = values.filter(
    (value) => typeof value === 'string' && value.length >= SECRET_LENGTH_MIN && !PLAIN.test(value),
  );
  return { json, secrets: [json, ...new Set(secrets)].slice(0, SECRETS_MAX) };
}

interface State {
  cookies: { value: string }[];
  origins: { localStorage?: { value: string }[] }[];
}

function readState(text: string): State {
  let state: Partial<State> | null = null;
  try {
    state = JSON.parse(text) as Partial<State> | null;
  } catch {
    // The reason would quote the text.
  }
  const { cookies, origins = [] } = state ?? {};
  const isState =
    Array.isArray(cookies) &&
    Array.isArray(origins) &&
    cookies.every((cookie) => typeof cookie?.value === 'string') &&
    origins.every(({ localStorage = [] }) => Array.isArray(localStorage));
  if (isState) return { cookies, origins };
  throw new SeineError("the login state is not a file of Playwright's `storageState`", {
    hint: 'it must be JSON with `cookies` and `origins`; see docs/rendering.md',
  });
}
