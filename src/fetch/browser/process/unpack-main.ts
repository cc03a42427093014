import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import chromium, { inflate } from '@sparticuz/chromium';

/** Unpacks the browser of the package to where TMPDIR says, which is the only place it knows; so it runs by itself. */
await chromium.executablePath();
await inflate(
  join(fileURLToPath(import.meta.resolve('@sparticuz/chromium')), '..', '..', 'bin', 'al2023.tar.br'),
);
