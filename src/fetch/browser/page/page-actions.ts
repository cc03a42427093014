import { setTimeout as sleep } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import { moveSteps, type Point, scrollSteps, typingPauses } from '../../../core/behaviour/human-behaviour.ts';
import type { BrowserAction } from '../../../core/job-schema/browser.ts';
import { evaluateApart } from './page-world.ts';
import type { Tab } from './tab.ts';

/** Screens that "to the end" goes down at most: lists without end have none. */
const SCROLL_SCREENS_MAX = 200;

/** After each screen: what comes into view is asked for meanwhile. */
const SCROLL_PAUSE_MS = 100;
/** At the end: how long a page that loads more as one scrolls is waited for. */
const GROWTH_MS = 1_000;

/** A key for these would go to the next field, or send the form. */
const LEAVES_FIELD = /[\t\r\n]/;

/** What the job wanted done, and could not be. */
export class ActionError extends Error {}

/** Uses pointer, wheel and keys as a person does, within the time there is. */
export class Hand {
  readonly #page: Page;
  readonly #next: () => number;
  #at: Point;

  constructor({ page }: Tab, next: () => number) {
    this.#page = page;
    this.#next = next;
    this.#at = { x: 100 + 400 * next(), y: 100 + 300 * next() };
  }

  /** Brings the pointer onto an element; the click itself is the caller's. */
  async reach(target: Locator, timeout: number): Promise<void> {
    await target.scrollIntoViewIfNeeded({ timeout });
    const box = await target.boundingBox({ timeout });
    if (box === null) return;
    const to = {
      x: box.x + box.width * (0.3 + 0.4 * this.#next()),
      y: box.y + box.height * (0.3 + 0.4 * this.#next()),
    };
    for (const { x, y, waitMs } of moveSteps(this.#at, to, this.#next)) {
      await this.#page.mouse.move(x, y);
      await sleep(waitMs);
    }
    this.#at = to;
  }

  /** One screen down. */
  async scroll(leftMs: () => number): Promise<void> {
    const height = this.#page.viewportSize()?.height ?? 800;
    for (const { pixels, waitMs } of scrollSteps(height, this.#next)) {
      if (leftMs() <= 0) return;
      await this.#page.mouse.wheel(0, pixels);
      await sleep(waitMs);
    }
  }

  async type(field: Locator, text: string, leftMs: () => number): Promise<void> {
    await this.reach(field, Math.max(1, leftMs()));
    await field.click({ timeout: Math.max(1, leftMs()) });
    await field.fill('', { timeout: Math.max(1, leftMs()) });
    const pauses = typingPauses(text, this.#next);
    for (const [index, letter] of [...text].entries()) {
      if (leftMs() <= 0) throw new Error('no time left');
      await sleep(pauses[index]!);
      if (LEAVES_FIELD.test(letter)) await this.#page.keyboard.insertText(letter);
      else await this.#page.keyboard.type(letter);
    }
  }
}

/** Does what the job wants done, as long as there is time. */
export async function runActions(
  tab: Tab,
  actions: readonly BrowserAction[],
  leftMs: () => number,
  hand: Hand | null,
): Promise<void> {
  for (const [index, action] of actions.entries()) {
    try {
      await runAction(tab, action, leftMs, hand);
    } catch {
      // Playwright's own words quote the page.
      throw new ActionError(`action ${index + 1} (${Object.keys(action)[0]}) did not finish in time`);
    }
  }
}

async function runAction(
  tab: Tab,
  action: BrowserAction,
  leftMs: () => number,
  hand: Hand | null,
): Promise<void> {
  const { page } = tab;
  const timeout = Math.max(1, leftMs());
  if ('waitFor' in action) await page.locator(action.waitFor).first().waitFor({ state: 'visible', timeout });
  else if ('waitMs' in action) await pause(action.waitMs, leftMs);
  else if ('scroll' in action)
    await scroll(tab, action.scroll === 'end' ? SCROLL_SCREENS_MAX : action.scroll, leftMs, hand);
  else if ('click' in action) {
    const target = page.locator(action.click).first();
    if (action.optional && (await target.count()) === 0) return;
    await hand?.reach(target, timeout);
    await target.click({ timeout });
  } else if ('type' in action) {
    const field = page.locator(action.type).first();
    if (hand === null) await field.fill(action.text, { timeout });
    else await hand.type(field, action.text, leftMs);
  } else await page.keyboard.press(action.press);
}

async function pause(ms: number, leftMs: () => number): Promise<void> {
  if (leftMs() < ms) throw new Error('no time left');
  await sleep(ms);
}

interface Place {
  height: number;
  isEnd: boolean;
}

const PLACE_OF = `(() => {
  const { scrollHeight } = document.scrollingElement ?? document.documentElement;
  return { height: scrollHeight, isEnd: window.scrollY + window.innerHeight >= scrollHeight - 2 };
})()`;
const SCROLL = `(() => {
  window.scrollBy(0, window.innerHeight);
  return ${PLACE_OF};
})()`;
const PLACE = `(${PLACE_OF})`;

async function scroll(tab: Tab, screens: number, leftMs: () => number, hand: Hand | null): Promise<void> {
  let endedAt: number | null = null;
  let heightAtEnd = 0;
  for (let screen = 0; screen < screens; ) {
    // A list without end is no failure: what there is by now will do.
    if (leftMs() <= 0) return;
    await hand?.scroll(leftMs);
    const place = (await evaluateApart(tab.cdp, tab.frameId, hand === null ? SCROLL : PLACE)) as Place;
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
