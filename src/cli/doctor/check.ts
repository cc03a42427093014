import { messageOf, SeineError } from '../../core/errors.ts';
import { hideCredentials } from '../../core/text/redact.ts';

/** What became of trying one part. */
export interface Check {
  name: string;
  /** False when Seine cannot work like that. */
  ok: boolean;
  detail: string;
  /** It works, but the operator should look at it. */
  warning?: string;
  /** What to do when it does not work. */
  hint?: string;
}

/** What a part that works says of itself. */
export interface Finding {
  detail: string;
  warning?: string;
}

/** Longer than any answer of a part that works, over any network. */
const PATIENCE_MS = 30_000;

/** Tries one part. Whatever it throws becomes a sentence; one that never answers does, too. */
export async function runCheck(
  name: string,
  attempt: (signal: AbortSignal) => Promise<Finding> | Finding,
): Promise<Check> {
  const giveUp = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new SeineError(`no answer within ${PATIENCE_MS / 1_000} s`, { hint: 'check the network' })),
    PATIENCE_MS,
  );
  try {
    const { detail, warning } = await Promise.race([(async () => attempt(giveUp.signal))(), late]);
    return { name, ok: true, detail, ...(warning === undefined ? {} : { warning }) };
  } catch (error) {
    const hint = error instanceof SeineError ? error.hint : null;
    return {
      name,
      ok: false,
      detail: hideCredentials(messageOf(error)).replace(/\s*\n\s*/g, ' '),
      ...(hint === null ? {} : { hint }),
    };
  } finally {
    clearTimeout(timer);
    giveUp.abort();
  }
}
