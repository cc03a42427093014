import { z } from 'zod';
import { secretRef } from './job-schema-proxies.ts';

/** What a real browser does with a page, and what is kept of it. */

const selector = z.string().min(1).max(1_000);
const waitMs = z.int().min(0).max(60_000);

const action = z.union([
  z.strictObject({ waitFor: selector.describe('Until an element is there and visible.') }),
  z.strictObject({ waitMs: waitMs.describe('For so long.') }),
  z.strictObject({
    scroll: z
      .union([z.literal('end'), z.int().min(1).max(1_000)])
      .describe('To the end, as long as the page grows, or so many screens.'),
  }),
  z.strictObject({
    click: selector.describe('An element to click.'),
    optional: z.boolean().default(false).describe('Goes on when there is no such element.'),
  }),
  z.strictObject({
    type: selector.describe('The field to type into.'),
    text: z.string().max(10_000).describe('What is typed.'),
  }),
  z.strictObject({ press: z.string().min(1).max(32).describe('A key, like `Enter`.') }),
]);

const screenshot = z
  .union([
    z.boolean(),
    z.strictObject({
      of: z
        .union([
          z.enum(['page', 'screen']),
          z.strictObject({ element: selector.describe('The first that matches.') }),
        ])
        .default('page')
        .describe('The whole page, what fits the screen, or one element.'),
      format: z.enum(['png', 'jpeg', 'webp']).default('png').describe('Of the picture.'),
      quality: z.int().min(1).max(100).default(80).describe('Of JPEG and WebP.'),
      packing: z
        .enum(['fast', 'small'])
        .default('fast')
        .describe('Of PNG: the same picture, in a third of the time or in two thirds of the bytes.'),
    }),
  ])
  .transform((value) => {
    if (value === false) return undefined;
    return value === true ? ({ of: 'page', format: 'png', quality: 80, packing: 'fast' } as const) : value;
  });

const capture = z.strictObject({
  name: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .describe('Name of the field.'),
  url: z.string().min(1).describe('URL pattern of the responses or sockets.'),
  of: z
    .enum(['json', 'frames'])
    .default('json')
    .describe('JSON that scripts fetch, or the frames of WebSockets.'),
  max: z.int().min(1).max(10_000).default(100).describe('Most that are kept of a page.'),
});

const BLOCKABLE = ['images', 'media', 'fonts', 'styles', 'ads'] as const;

const REST = ['dom', 'load', 'idle'] as const;

/** What a browser is told. */
export const browser = z.strictObject({
  waitUntil: z.enum(REST).default('load'),
  actions: z.array(action).max(100).default([]).describe('What is done on the page, in this order.'),
  viewport: z
    .strictObject({
      width: z.int().min(64).max(4_096).describe('In pixels.'),
      height: z.int().min(64).max(4_096).describe('In pixels.'),
    })
    .optional()
    .describe('1280 × 800 when absent, and without a device.'),
  device: z.string().min(1).max(64).optional().describe('A device that Playwright knows, like `iPhone 15`.'),
  locale: z.string().min(2).max(35).optional().describe('Language of the browser, like `de-CH`.'),
  timezone: z.string().min(1).max(64).optional().describe('Like `Europe/Zurich`.'),
  block: z
    .array(z.enum(BLOCKABLE))
    .default([])
    .describe('What is not loaded; `ads` are known advertisers and trackers.'),
  screenshot: screenshot.optional().describe('Kept beside the page; `true` is the whole page as PNG.'),
  pdf: z.boolean().default(false).describe('The page as it would be printed is kept, too.'),
  capture: z
    .array(capture)
    .max(20)
    .default([])
    .describe('Data that scripts of the page load: a field of the record for each.'),
});

/** What a route says of it: when a page is there depends on the fetcher, too. */
export const routeBrowser = browser.extend({
  waitUntil: z
    .enum(REST)
    .optional()
    .describe(
      'When the page counts as there: parsed, loaded, or half a second without traffic; `idle` under `auto` when absent, else `load`.',
    ),
});

/** What somebody who logged in by hand has left in a browser, for every browser of the job. */
export const login = z
  .strictObject({
    state: secretRef.describe("Where the JSON is that Playwright's `storageState` has written."),
  })
  .optional()
  .describe('Saved login state: browsers of the job start with its cookies and storage. A secret.');

export type BrowserSpec = z.output<typeof browser>;
export type BrowserAction = z.output<typeof action>;
export type ScreenshotSpec = NonNullable<z.output<typeof screenshot>>;
export type CaptureSpec = z.output<typeof capture>;
