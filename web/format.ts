/** Numbers and times as people read them. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function count(value: number): string {
  return whole.format(value);
}

/** `1 record`, `3 records`; a plural that is not made with an s is given. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** At most four letters and digits: 12.3k. */
export function short(value: number): string {
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ] as const)
    if (Math.abs(value) >= size) {
      const scaled = value / (unit === 'k' ? 1e3 : size);
      return `${scaled.toFixed(scaled < 100 ? 1 : 0)}${unit}`;
    }
  return value >= 1_000 ? count(value) : String(Math.round(value * 10) / 10);
}

export function rate(value: number): string {
  if (value === 0) return '0';
  return value >= 100 ? count(value) : value.toFixed(value < 10 ? 1 : 0);
}

export function bytes(value: number | null): string {
  if (value === null) return '–';
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let left = value;
  let at = 0;
  while (left >= 1_000 && at < units.length - 1) {
    left /= 1_000;
    at++;
  }
  return `${at === 0 || left >= 100 ? Math.round(left) : left.toFixed(1)} ${units[at]}`;
}

export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.1) return '<0.1 %';
  return `${value >= 99.95 || value === 0 ? Math.round(value) : value < 10 ? value.toFixed(1) : Math.floor(value * 10) / 10} %`;
}

export function duration(seconds: number): string {
  if (seconds > 0 && seconds < 1) return '<1 s';
  const total = Math.max(0, Math.round(seconds));
  const [days, hours, minutes] = [
    Math.floor(total / 86_400),
    Math.floor(total / 3_600) % 24,
    Math.floor(total / 60) % 60,
  ];
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${minutes} min`;
  if (minutes > 0) return `${minutes} min ${total % 60} s`;
  return `${total} s`;
}

export function millis(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value < 1_000) return `${Math.round(value)} ms`;
  return `${Number((value / 1_000).toFixed(value < 10_000 ? 2 : 1))} s`;
}

/** Two digits that matter: `$12.30`, `$0.042`, `$0.0000017`; what costs nothing is `$0`. */
export function usd(value: number): string {
  if (value <= 0) return '$0';
  if (value >= 0.095) return `$${value.toFixed(2)}`;
  const digits = Math.min(20, 1 - Math.floor(Math.log10(Number(value.toPrecision(2)))));
  return `$${value.toFixed(digits)}`;
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

export function time(at: string | null): string {
  if (at === null) return '–';
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString()
    ? clock.format(date)
    : `${day.format(date)} ${clock.format(date).slice(0, 5)}`;
}

export function ago(at: string | null, now: number): string {
  if (at === null) return '–';
  const seconds = Math.round((now - Date.parse(at)) / 1_000);
  return seconds < 1 ? 'now' : `${duration(seconds)} ago`;
}

/**
 * Text of strangers: characters that change the direction or the look of what follows are shown by their code, so that
 * an address reads as what it is.
 */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (char) => `\u27e8${char.charCodeAt(0).toString(16).padStart(4, '0')}\u27e9`,
  );
}
