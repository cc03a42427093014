import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What of `@sparticuz/chromium` is used. */
interface ChromiumModule {
  default: { executablePath(): Promise<string> };
  inflate(path: string): Promise<string>;
}

/**
 * Unpacks the browser of the package to where TMPDIR says, which is the only place it knows; so it runs by itself. The
 * argument is the folder of the package.
 */
const dir = process.argv[2]!;
const entry = createRequire(join(dir, 'package.json')).resolve('@sparticuz/chromium');
const { default: chromium, inflate } = (await import(pathToFileURL(entry).href)) as ChromiumModule;
await chromium.executablePath();
await inflate(join(dir, 'bin', 'al2023.tar.br'));
