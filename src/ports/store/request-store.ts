/** What a request with an Idempotency-Key meets. */
export type BegunRequest =
  /** It is to be answered. `id` stays the same when it is sent again because no answer came of it. */
  | { kind: 'begun'; id: string }
  | { kind: 'in-flight' }
  /** It was answered: with the hash of what was sent, and the reply as it was kept. */
  | { kind: 'answered'; payload: string; reply: string };

/** Requests that may be sent again without harm, each with its reply. `holder` names the process that answers it. */
export interface RequestStore {
  begin(
    key: string,
    options: { id: string; holder: string; now: number; until: number; forgetBefore: number },
  ): Promise<BegunRequest>;
  /** They are still being answered: no other process begins them before `until`. */
  extend(keys: readonly string[], holder: string, until: number): Promise<void>;
  answer(key: string, holder: string, answered: { payload: string; reply: string }): Promise<void>;
  /** No answer is kept: the next request with the key begins at once. */
  release(key: string, holder: string): Promise<void>;
  /** The same for all that are not answered. For the start of a process that is alone. */
  releaseAll(): Promise<void>;
  forget(before: number, limit: number): Promise<number>;
}
