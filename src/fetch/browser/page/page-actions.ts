import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserAction } from '../../../core/job-schema/browser.ts';
import { evaluateApart } from './page-world.ts';
import type { Tab } from './tab.ts';

/** Screens that "to the end" goes down at most: lists without end have none. */
const SCROLL_SCREENS_MAX = 200;

/** After each screen: what comes into view is asked for meanwhile. */
const SCROLL_PAUSE_MS = 100;
/** At the end: how long a page that loads more as one scrolls is waited for. */
const GROWTH_MS = 1_000;

/** What the job wanted done, and could not be. */
export class ActionError extends Error {}

/** Does what the job wants done, as long as there is time. */
export async function runActions(
  tab: Tab,
  actions: readonly BrowserAction[],
  leftMs: () => number,
): Promise<void> {
  for (const [index, action] of actions.entries()) {
    try {
      await runAction(tab, action, leftMs);
    } catch {
      // Playwright's own words quote the page.
      throw new ActionError(`action ${index + 1} (${Object.keys(action)[0]}) did not finish in time`);
    }
  }
}

async function runAction(tab: Tab, action: BrowserAction, leftMs: () => number): Promise<void> {
  const { page } = tab;
  const timeout = Math.max(1, leftMs());
  if ('waitFor' in action) await page.locator(action.waitFor).first().waitFor({ state: 'visible', timeout });
  else if ('waitMs' in action) await pause(action.waitMs, leftMs);
  else if ('scroll' in action)
    await scroll(tab, action.scroll === 'end' ? SCROLL_SCREENS_MAX : action.scroll, leftMs);
  else if ('click' in action) {
    const target = page.locator(action.click).first();
    if (action.optional && (await target.count()) === 0) return;
    await target.click({ timeout });
  } else if ('type' in action) await page.locator(action.type).first().fill(action.text, { timeout });
  else await page.keyboard.press(action.press);
}

async function pause(ms: number, leftMs: () => number): Promise<void> {
  if (leftMs() < ms) throw new Error('no time left');
  await sleep(ms);
}

interface Place {
  height: number;
  isEnd: boolean;
}

const SCROLL = `(() => {
  window.scrollBy(0, window.innerHeight);
  const { scrollHeight } = document.scrollingElement ?? document.documentElement;
  return { height: scrollHeight, isEnd: window.scrollY + window.innerHeight >= scrollHeight - 2 };
})()`;

async function scroll(tab: Tab, screens: number, leftMs: () => number): Promise<void> {
  let endedAt: number | null = null;
  let heightAtEnd = 0;
  for (let screen = 0; screen < screens; ) {
    // A list without end is no failure: what there is by now will do.
    if (leftMs() <= 0) return;
    const place = (await evaluateApart(tab.cdp, tab.frameId, SCROLL)) as Place;
    await sleep(SCROLL_PAUSE_MS);
    if (!place.isEnd) {
      endedAt = null;
      screen++;
      continue;
    }
    const now = performance.now();
    if (endedAt === null || place.height > heightAtEnd) {
      endedAt = now;
      heightAtEnd = place.height;
      screen++;
    } else if (now - endedAt > GROWTH_MS) return;
  }
}
