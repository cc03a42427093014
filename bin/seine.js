#!/usr/bin/env -S node --max-semi-space-size=8
// The coordinator holds little, so its young generation is kept small: 384 MB became 244 with a million tasks.
// Plain JavaScript that any Node can read, so that an old one gets a sentence and not a syntax error.
const major = Number(process.versions.node.split('.')[0]);
if (major < 24) {
  process.stderr.write(
    `seine: Node 24 or newer is needed, this is ${process.version}; run it with npx after npm install\n`,
  );
  process.exitCode = 2;
} else {
  // SQLite is still called experimental in Node 24; nobody who runs a job needs to read that.
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (!String(warning).includes('SQLite')) emitWarning.call(process, warning, ...rest);
  };
  const { enableCompileCache } = await import('node:module');
  enableCompileCache();
  const { main } = await import('../dist/cli/main.js');
  process.exitCode = await main(process.argv.slice(2));
}
