/**
 * The programs that threads and their processes run. The same tree runs from sources and from the build. The build has
 * the thread in few files (scripts/build/bundle-thread.ts): a thread loads them in 50 ms of CPU, and its 300 modules in 130.
 */
export function threadEntries(): { entry: URL; suspectEntry: URL } {
  return import.meta.url.endsWith('.ts')
    ? {
        entry: new URL('../entry/thread.ts', import.meta.url),
        suspectEntry: new URL('../entry/suspects.ts', import.meta.url),
      }
    : {
        entry: new URL('../thread/thread.mjs', import.meta.url),
        suspectEntry: new URL('../entry/suspects.js', import.meta.url),
      };
}
