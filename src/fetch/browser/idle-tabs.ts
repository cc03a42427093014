import type { Tab } from './tab.ts';

/** Tabs that wait for their next page, by the kind of pages that they are for. */
export class IdleTabs {
  readonly #tabs = new Map<string, Tab[]>();

  put(tab: Tab): void {
    tab.lastUsedAt = performance.now();
    const same = this.#tabs.get(tab.plan.key);
    if (same) same.push(tab);
    else this.#tabs.set(tab.plan.key, [tab]);
  }

  take(key: string): Tab | null {
    const tabs = this.#tabs.get(key);
    const tab = tabs?.pop() ?? null;
    if (tabs?.length === 0) this.#tabs.delete(key);
    return tab;
  }

  takeOldest(): Tab | null {
    let oldest: Tab | null = null;
    for (const tabs of this.#tabs.values())
      for (const tab of tabs) if (oldest === null || tab.lastUsedAt < oldest.lastUsedAt) oldest = tab;
    if (oldest === null) return null;
    const { key } = oldest.plan;
    const others = this.#tabs.get(key)!.filter((tab) => tab !== oldest);
    if (others.length === 0) this.#tabs.delete(key);
    else this.#tabs.set(key, others);
    return oldest;
  }
}
