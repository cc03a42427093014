import type { Frontier, Settlement, Store } from '../../../ports/store.ts';

/** The same store; `onSettled` is told of what was settled, before its coordinator goes on. */
export function watchSettles(
  store: Store,
  onSettled: (settlement: Settlement) => Promise<void> | void,
): Store {
  const settle: Frontier['settle'] = async (settlement) => {
    const result = await store.frontier.settle(settlement);
    if (result.applied) await onSettled(settlement);
    return result;
  };
  const frontier = new Proxy(store.frontier, {
    get(target, name) {
      if (name === 'settle') return settle;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { ...store, frontier };
}

/** Tells who waits for a page of this server that its task is finished, in the moment in which that is written. */
export class SettleWatch {
  readonly #waiting = new Map<number, Set<() => void>>();

  /** Resolves when the task has been settled for good, or after the time. */
  wait(taskId: number, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(taskId) ?? new Set();
      this.#waiting.set(taskId, waiting);
      const end = () => {
        clearTimeout(timer);
        waiting.delete(end);
        if (waiting.size === 0) this.#waiting.delete(taskId);
        resolve();
      };
      const timer = setTimeout(end, ms);
      waiting.add(end);
    });
  }

  tell({ tasks }: Settlement): void {
    if (this.#waiting.size === 0) return;
    for (const { id, to } of tasks)
      if (to !== 'pending') for (const end of [...(this.#waiting.get(id) ?? [])]) end();
  }
}
