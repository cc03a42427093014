import type { BrowserSpec, ScreenshotSpec } from '../../../core/job-schema/browser.ts';
import { machine } from '../../../machine/machine.ts';
import type { FetchRequest, FetchResult, Shot } from '../../../ports/fetcher.ts';
import { KeyedSemaphore } from '../../network/keyed-semaphore.ts';
import { ActionError } from './page-actions.ts';
import { repackPng } from './repack-png.ts';
import type { Tab } from './tab.ts';

/** WebP has no larger pictures, Chromium draws none, and viewers open none. */
const SCREENSHOT_HEIGHT_MAX = 16_000;
/** Pictures that one worker packs at once, by cores: unpacked, each takes 40 MB and more. */
const PACKED_AT_ONCE_SHARE = 0.5;
/** Of a picture or a print. */
const SHOT_BYTES_MAX = 64 * 1024 * 1024;

interface Clip {
  x: number;
  y: number;
  width: number;
  height: number;
  scale: number;
}

export async function takeShots(tab: Tab, spec: BrowserSpec, leftMs: () => number): Promise<Shot[]> {
  const shots: Shot[] = [];
  if (spec.screenshot) shots.push(await takeScreenshot(tab, spec.screenshot, leftMs));
  if (spec.pdf) shots.push(await printPage(tab));
  return shots;
}

const packing = new KeyedSemaphore();

/** What takes no tab any more: makes pictures small where the route wants it. */
export async function packShots(
  result: FetchResult,
  { render, signal }: Pick<FetchRequest, 'render' | 'signal'>,
): Promise<FetchResult> {
  if (result.kind !== 'response' || !result.rendered || render?.screenshot?.packing !== 'small')
    return result;
  const leave = await packing.enter('', packedAtOnce(), signal);
  try {
    const shots: Shot[] = [];
    for (const shot of result.rendered.shots)
      shots.push(shot.type === 'image/png' ? { ...shot, bytes: await repackPng(shot.bytes) } : shot);
    return { ...result, rendered: { ...result.rendered, shots } };
  } finally {
    leave();
  }
}

function packedAtOnce(): number {
  return Math.max(1, Math.floor(machine().cores * PACKED_AT_ONCE_SHARE));
}

/** A picture for people who want to know why something failed. */
export function takeFailureShot(tab: Tab): Promise<Shot> {
  return takeScreenshot(tab, { of: 'screen', format: 'jpeg', quality: 60, packing: 'fast' }, () => 1_000);
}

async function takeScreenshot(tab: Tab, spec: ScreenshotSpec, leftMs: () => number): Promise<Shot> {
  const clip = await clipOf(tab, spec, leftMs);
  const { data } = await tab.screenshots.take(() =>
    tab.cdp.send('Page.captureScreenshot', {
      format: spec.format,
      // Those that are to be small are packed once more, elsewhere.
      ...(spec.format === 'png' ? { optimizeForSpeed: true } : { quality: spec.quality }),
      ...(clip ? { clip, captureBeyondViewport: true } : {}),
    }),
  );
  return { kind: 'screenshot', type: `image/${spec.format}`, bytes: bytesOf(data) };
}

/** Null is what the screen shows. */
async function clipOf(tab: Tab, { of }: ScreenshotSpec, leftMs: () => number): Promise<Clip | null> {
  if (of === 'screen') return null;
  if (of === 'page') {
    const { cssContentSize } = await tab.cdp.send('Page.getLayoutMetrics');
    return bounded(tab, { x: 0, y: 0, width: cssContentSize.width, height: cssContentSize.height });
  }
  const target = tab.page.locator(of.element).first();
  const box = await target.boundingBox({ timeout: Math.max(1, leftMs()) }).catch(() => null);
  if (box === null) throw new ActionError('the element for the screenshot does not exist');
  const { cssVisualViewport } = await tab.cdp.send('Page.getLayoutMetrics');
  return bounded(tab, { ...box, x: box.x + cssVisualViewport.pageX, y: box.y + cssVisualViewport.pageY });
}

/** In dots of the picture, of which a telephone has several for each of the page. */
function bounded(tab: Tab, box: Omit<Clip, 'scale'>): Clip {
  const dots = SCREENSHOT_HEIGHT_MAX / (tab.plan.options.deviceScaleFactor ?? 1);
  const width = Math.max(1, Math.min(box.width, dots));
  const height = Math.max(1, Math.min(box.height, dots));
  return { x: Math.max(0, box.x), y: Math.max(0, box.y), width, height, scale: 1 };
}

async function printPage(tab: Tab): Promise<Shot> {
  const { data } = await tab.cdp.send('Page.printToPDF', { printBackground: true });
  return { kind: 'pdf', type: 'application/pdf', bytes: bytesOf(data) };
}

function bytesOf(data: string): Buffer {
  const bytes = Buffer.from(data, 'base64');
  if (bytes.length > SHOT_BYTES_MAX) throw new ActionError('the screenshot is too large');
  return bytes;
}
