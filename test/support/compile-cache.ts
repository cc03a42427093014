/**
 * For every process and thread that is started from here on: what Node has compiled once, and stripped of its types, is
 * not compiled again. Thousands of processes and threads of the tests load the same few hundred modules.
 */
export function useCompileCache(): void {
  process.env.NODE_COMPILE_CACHE ??= new URL('../../node_modules/.cache/node', import.meta.url).pathname;
}
