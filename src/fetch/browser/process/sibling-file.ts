/**
 * A file of this folder that runs in a process of its own. The same tree runs from sources, from the build, and bundled,
 * with the file beside: it has this file's ending.
 */
export function siblingFile(name: string): URL {
  const [ending] = /\.\w+$/.exec(import.meta.url) ?? ['.js'];
  return new URL(`./${name}${ending}`, import.meta.url);
}
