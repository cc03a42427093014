/** A sentence when this Node is too old, else null. 22.19 is the oldest that Seine is tested with. */
export function checkNode(version = process.versions.node) {
  const [major, minor] = version.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return null;
  return `seine needs Node 22.19 or newer, this is ${version}; the npm package node brings one: npm install node@24`;
}

/** Without the warning that SQLite is experimental, which it is called in Node 22 and 24. Returns how to undo it. */
export function hushWarnings() {
  const { emitWarning } = process;
  process.emitWarning = (warning, ...rest) => {
    if (!String(warning).includes('SQLite')) emitWarning.call(process, warning, ...rest);
  };
  return () => {
    process.emitWarning = emitWarning;
  };
}
