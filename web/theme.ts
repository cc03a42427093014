import { effect, signal } from '@preact/signals';

/** `auto` follows the system. */
export type Theme = 'auto' | 'dark' | 'light';

const KEY = 'seine-theme';
const system = matchMedia('(prefers-color-scheme: light)');

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === 'dark' || value === 'light' ? value : 'auto';
}

export const theme = signal<Theme>(stored());
/** Counts changes of the colours: charts are drawn with them. */
export const themeChanges = signal(0);

effect(() => {
  const value = theme.value;
  if (value === 'auto') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, value);
  document.documentElement.dataset.theme = value === 'auto' ? (system.matches ? 'light' : 'dark') : value;
  themeChanges.value = themeChanges.peek() + 1;
});

system.addEventListener('change', () => {
  if (theme.value !== 'auto') return;
  document.documentElement.dataset.theme = system.matches ? 'light' : 'dark';
  themeChanges.value++;
});

export function switchTheme(): void {
  theme.value = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
}

export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
