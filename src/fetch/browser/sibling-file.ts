/** A file of this folder that runs in a process of its own; the same tree runs from sources and from the build. */
export function siblingFile(name: string): URL {
  return new URL(`./${name}.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url);
}
