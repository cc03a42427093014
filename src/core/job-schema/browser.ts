import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { parsePattern } from '../url/pattern.ts';
import { secretRef } from './proxies.ts';

/** What a real browser does with a page, and what is kept of it. */

const selector = z.string().min(1).max(1_000);
const waitMs = z.int().min(0).max(60_000);

const action = z.union([
  z.strictObject({ waitFor: selector.describe('Wait until an element that matches is visible.') }),
  z.strictObject({ waitMs: waitMs.describe('Wait for this time.') }),
  z.strictObject({
    scroll: z
      .union([z.literal('end'), z.int().min(1).max(1_000)])
      .describe('`end` scrolls until the page stops growing; a number scrolls that many screens.'),
  }),
  z.strictObject({
    click: selector.describe('Element to click.'),
    optional: z.boolean().default(false).describe('Continue if the element does not exist.'),
  }),
  z.strictObject({
    type: selector.describe('Input field to type into.'),
    text: z.string().max(10_000).describe('Text to type.'),
  }),
  z.strictObject({ press: z.string().min(1).max(32).describe('Key to press, such as `Enter`.') }),
]);

const screenshot = z
  .union([
    z.boolean(),
    z.strictObject({
      of: z
        .union([
          z.enum(['page', 'screen']),
          z.strictObject({ element: selector.describe('Selector; the first match is used.') }),
        ])
        .default('page')
        .describe('The whole page, the visible screen, or one element.'),
      format: z.enum(['png', 'jpeg', 'webp']).default('png').describe('Image format.'),
      quality: z.int().min(1).max(100).default(80).describe('Quality of JPEG and WebP.'),
      packing: z
        .enum(['fast', 'small'])
        .default('fast')
        .describe(
          'PNG compression: `small` has 70 % of the bytes of `fast`, and takes the worker a fifth of a second more for a long page.',
        ),
    }),
  ])
  .transform((value) => {
    if (value === false) return undefined;
    return value === true ? ({ of: 'page', format: 'png', quality: 80, packing: 'fast' } as const) : value;
  });

const capture = z
  .strictObject({
    name: z
      .string()
      .regex(/^[\w.-]{1,64}$/)
      .describe('Name of the field.'),
    url: z.string().min(1).describe('URL pattern of the responses, or of the WebSockets: `wss://*/ticker`.'),
    of: z
      .enum(['json', 'frames'])
      .default('json')
      .describe('JSON responses to scripts, or frames of WebSockets.'),
    max: z.int().min(1).max(10_000).default(100).describe('Maximum number of items per page.'),
  })
  .superRefine(({ url, of }, context) => {
    try {
      parsePattern(url, { sockets: of === 'frames' });
    } catch (error) {
      context.addIssue({ code: 'custom', path: ['url'], message: messageOf(error) });
    }
  });

const BLOCKABLE = ['images', 'media', 'fonts', 'styles', 'ads'] as const;

const REST = ['dom', 'load', 'idle'] as const;

/** Settings of the browser. */
export const browser = z.strictObject({
  waitUntil: z.enum(REST).default('load'),
  actions: z.array(action).max(100).default([]).describe('Actions on the page, in this order.'),
  behaviour: z
    .enum(['plain', 'human'])
    .optional()
    .describe(
      'How to perform actions: `plain` at once; `human` moves the pointer in curves, scrolls in small steps with pauses and types with a rhythm. Default: `plain`.',
    ),
  viewport: z
    .strictObject({
      width: z.int().min(64).max(4_096).describe('In pixels.'),
      height: z.int().min(64).max(4_096).describe('In pixels.'),
    })
    .optional()
    .describe('Size of the window. Default: that of the device, or 1280 × 800.'),
  device: z.string().min(1).max(64).optional().describe('Device name from Playwright, such as `iPhone 15`.'),
  locale: z.string().min(2).max(35).optional().describe('Language of the browser, such as `de-CH`.'),
  timezone: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('Time zone of the browser, such as `Europe/Zurich`.'),
  block: z
    .array(z.enum(BLOCKABLE))
    .default([])
    .describe('Resources to block; `ads` are known ad networks and trackers.'),
  screenshot: screenshot
    .optional()
    .describe('Screenshot to store with the page; `true` is the whole page as PNG.'),
  pdf: z.boolean().default(false).describe('Also store the page as PDF.'),
  capture: z
    .array(capture)
    .max(20)
    .default([])
    .describe('Data loaded by the scripts of the page. Each entry becomes a field of the record.'),
});

/** The same in a route. */
export const routeBrowser = browser.extend({
  waitUntil: z
    .enum(REST)
    .optional()
    .describe(
      'When the page is ready: DOM parsed, page loaded, or no network traffic for half a second (at most ten seconds later). Default: `idle`.',
    ),
});

/** Cookies and storage of a manual login, for every browser of the job. */
export const login = z
  .strictObject({
    state: secretRef.describe("Where to read the JSON that Playwright's `storageState` wrote."),
  })
  .optional()
  .describe('Saved login state: browsers of the job start with its cookies and storage. It is a secret.');

export type BrowserSpec = z.output<typeof browser>;
export type BrowserAction = z.output<typeof action>;
export type ScreenshotSpec = NonNullable<z.output<typeof screenshot>>;
export type CaptureSpec = z.output<typeof capture>;
