/** The largest candidate of a `srcset`: by width, else by density. Linear, as the attribute may be megabytes. */
export function largestOf(srcset: string): string | null {
  let best: string | null = null;
  let bestSize = -1;
  for (const { url, size } of candidatesOf(srcset)) {
    if (size <= bestSize) continue;
    best = url;
    bestSize = size;
  }
  return best;
}

const SEPARATORS = /[\s,]*/y;
const URL_TEXT = /\S+/y;
const DESCRIPTOR = /[^,]*/y;

/** As HTML reads it: a URL ends at white space and may hold commas, but not end with one. */
function* candidatesOf(srcset: string): Generator<{ url: string; size: number }> {
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const text = pattern.exec(srcset)?.[0] ?? '';
    at += text.length;
    return text;
  };
  while (true) {
    take(SEPARATORS);
    const text = take(URL_TEXT);
    if (text === '') return;
    let end = text.length;
    while (text[end - 1] === ',') end--;
    // A comma right after the URL leaves it without a descriptor.
    const descriptor = end < text.length ? '' : take(DESCRIPTOR).trim();
    yield { url: text.slice(0, end), size: sizeOf(descriptor) };
  }
}

/** Widths are in the hundreds and densities below ten, so one number orders both. */
function sizeOf(descriptor: string): number {
  const size = Number.parseFloat(descriptor);
  return descriptor === '' || !(size > 0) ? 1 : size;
}
