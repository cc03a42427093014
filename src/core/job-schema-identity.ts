import { z } from 'zod';
import { secretRef } from './job-schema-proxies.ts';

/** How requests identify themselves: as the crawler, or like a browser. */

export const identity = z
  .strictObject({
    mode: z
      .enum(['honest', 'browser'])
      .default('honest')
      .describe(
        '`honest` sends the User-Agent of the crawler; `browser` sends the headers of current browsers.',
      ),
    userAgent: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe(
        'User-Agent header in honest mode. In both modes its first word selects the rules in robots.txt.',
      ),
    contact: z
      .string()
      .max(256)
      .optional()
      .describe('URL or email address to include in the default User-Agent.'),
    headers: z.record(z.string(), z.string()).default({}).describe('Additional request headers.'),
    secretHeaders: z
      .record(
        z.string().regex(/^https?:\/\/[^/@?#\s]+$/, 'an origin must look like https://shop.example'),
        z.record(z.string().regex(/^[\w-]+$/, 'not a header name'), secretRef),
      )
      .optional()
      .describe('Headers with secret values, by origin. They are sent only to that origin.'),
    languages: z
      .array(z.string().regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, 'a language must look like de-CH'))
      .min(1)
      .max(8)
      .optional()
      .describe('Languages for Accept-Language, in order of preference. Default: English.'),
    device: z.enum(['desktop', 'mobile']).default('desktop').describe('Device type in browser mode.'),
    cookies: z
      .boolean()
      .optional()
      .describe('Keep cookies, by origin and identity. Default: true in browser mode, false in honest mode.'),
  })
  .prefault({});
