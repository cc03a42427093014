import { z } from 'zod';
import { secretRef } from './job-schema-proxies.ts';

/** Who asks: the crawler under its own name, or something that looks like a browser. */

export const identity = z
  .strictObject({
    mode: z
      .enum(['honest', 'browser'])
      .default('honest')
      .describe('`honest`: its own User-Agent; `browser`: header sets of current browsers.'),
    userAgent: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe(
        'User-Agent header of honest requests; robots.txt is read for its first word in either mode.',
      ),
    contact: z.string().max(256).optional().describe('URL or mail address put into the default User-Agent.'),
    headers: z.record(z.string(), z.string()).default({}).describe('Further request headers.'),
    secretHeaders: z
      .record(
        z.string().regex(/^https?:\/\/[^/@?#\s]+$/, 'an origin is written like https://shop.example'),
        z.record(z.string().regex(/^[\w-]+$/, 'not a header name'), secretRef),
      )
      .optional()
      .describe('By origin: headers whose values are secrets, and where those are. They go nowhere else.'),
    languages: z
      .array(z.string().regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language is written like de-CH'))
      .min(1)
      .max(8)
      .optional()
      .describe('Languages of Accept-Language, the most wanted first; English when absent.'),
    device: z
      .enum(['desktop', 'mobile'])
      .default('desktop')
      .describe('What browser-like requests come from.'),
    cookies: z
      .boolean()
      .optional()
      .describe('Keep cookies, by origin and identity; browser mode does, honest mode does not.'),
  })
  .prefault({});
