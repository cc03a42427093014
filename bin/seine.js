#!/usr/bin/env -S node --max-semi-space-size=8
// The coordinator holds little, so its young generation is kept small: 384 MB became 244 with a million tasks.
// Plain JavaScript that any Node can read, so that an old one gets a sentence and not a syntax error.
import { checkNode, hushWarnings } from './check-node.js';

/** Commands with a bundle of their own, see scripts/build/bundle-command.ts. */
const BUNDLES = {
  report: ['status', 'jobs', 'stop', 'cancel', 'dead'],
  run: ['run', 'resume'],
};

const problem = checkNode();
if (problem) {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 2;
} else {
  hushWarnings();
  const { useCompileCache } = await import('../dist/entry/compile-cache.js');
  useCompileCache();
  const [bundle] = Object.keys(BUNDLES).filter((name) => BUNDLES[name].includes(process.argv[2]));
  const { main } = await import(`../dist/command/${bundle === undefined ? '' : `${bundle}/`}main.mjs`);
  process.exitCode = await main(process.argv.slice(2));
}
