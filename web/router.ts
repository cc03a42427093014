import { computed, signal } from '@preact/signals';

/** Where the reader is: the address is the only state of a view, so that every view can be linked to. */

const address = signal(location.pathname + location.search);

addEventListener('popstate', () => {
  address.value = location.pathname + location.search;
});

export const path = computed(() => address.value.split('?')[0]!.replace(/\/+$/, '') || '/');
export const query = computed(() => new URLSearchParams(address.value.split('?')[1] ?? ''));

export function go(to: string, { replace = false } = {}): void {
  if (to === address.value) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', to);
  const isOtherView = to.split('?')[0] !== path.value;
  address.value = to;
  if (isOtherView) {
    scrollTo(0, 0);
    document.querySelector<HTMLElement>('main')?.focus({ preventScroll: true });
  }
}

/** The same view with other parameters; empty ones are left out. */
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes))
    if (value === null || value === '') next.delete(name);
    else next.set(name, value);
  const text = next.toString();
  go(path.value + (text === '' ? '' : `?${text}`), { replace: true });
}

export function withQuery(to: string, values: Record<string, string | null | undefined>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => !!entry[1]);
  return given.length === 0 ? to : `${to}?${new URLSearchParams(given)}`;
}

/** Clicks on links of our own stay in the page; those with a key held down, or elsewhere, are the browser's. */
addEventListener('click', (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
    return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
  const to = link.pathname + link.search;
  if (/^\/(api|docs|openapi\.json|metrics|assets)(\/|$)/.test(link.pathname)) return;
  event.preventDefault();
  go(to);
});
