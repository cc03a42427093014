import { rmSync } from 'node:fs';
import { bundleForNode } from './bundle-for-node.ts';

/**
 * Bundles packages of thousands of files, of which little is used, into dist: an installation without them is a third
 * smaller, and npm has no script of theirs to warn of. Each takes the place of what the compiler made of the same source, so
 * run it after the compiler. From sources, the packages themselves are loaded.
 */

/** Each names what is used of its packages. */
const PACKAGES = [
  'aws/s3/s3-sdk',
  'aws/lambda/lambda-sdk',
  'cli/lambda/iam-sdk',
  'server/mcp/mcp-sdk',
  'transport/bullmq/bullmq-packages',
];

const SHARED = 'dist/packages';

rmSync(SHARED, { recursive: true, force: true });
await bundleForNode(
  {
    entryPoints: PACKAGES.map((path) => `src/${path}.ts`),
    outdir: 'dist',
    outbase: 'src',
    chunkNames: 'packages/part-[hash]',
    // The first two are dependencies of ours. The others are used where they are installed: to unpack long texts faster, of
    // which BullMQ has none, and to colour traces.
    external: ['zod', 'pg', 'msgpackr-extract', 'supports-color'],
  },
  SHARED,
);
