import { computed, effect, signal } from '@preact/signals';

/** `auto` follows the system. */
type Theme = 'auto' | 'dark' | 'light';

const KEY = 'seine-theme';
const system = matchMedia('(prefers-color-scheme: light)');

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === 'dark' || value === 'light' ? value : 'auto';
}

export const theme = signal<Theme>(stored());
const isSystemLight = signal(system.matches);
/** The colours that are shown: charts are drawn anew when they change. */
export const shownTheme = computed(() =>
  theme.value === 'auto' ? (isSystemLight.value ? 'light' : 'dark') : theme.value,
);

effect(() => {
  if (theme.value === 'auto') localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
});

effect(() => {
  document.documentElement.dataset.theme = shownTheme.value;
});

system.addEventListener('change', () => {
  isSystemLight.value = system.matches;
});

export function switchTheme(): void {
  theme.value = shownTheme.value === 'dark' ? 'light' : 'dark';
}

export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
