/** Where mail goes, as the setting says: `smtps://user:password@smtp.example:465?to=ops@example.com&from=seine@example.com`. */
export interface MailTarget {
  host: string;
  port: number;
  /** `tls`: from the start; `starttls`: before anything is said; `none`: only where that is asked for, or on this machine. */
  encryption: 'tls' | 'starttls' | 'none';
  login: { user: string; password: string } | null;
  from: string;
  to: readonly string[];
}

const PORTS = { tls: 465, starttls: 587, none: 25 } as const;
const RECIPIENTS_MAX = 50;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i;
/** Names and hosts without spaces, angle brackets, commas or line ends; servers know the rest. */
const ADDRESS = /^[^\s@<>,;"]{1,64}@[^\s@<>,;"]{1,255}$/;

/** Null when it makes no sense, or would send a password in the clear over a network. */
export function parseMailTarget(text: string): MailTarget | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || (url.protocol !== 'smtp:' && url.protocol !== 'smtps:') || url.hostname === '') return null;
  const given = [...url.searchParams.keys()];
  if (!given.every((name) => name === 'to' || name === 'from' || name === 'starttls')) return null;
  const isLocal = LOOPBACK.test(url.hostname);
  const starttls = url.searchParams.get('starttls') ?? (isLocal ? 'no' : 'yes');
  if (starttls !== 'yes' && starttls !== 'no') return null;
  const encryption = url.protocol === 'smtps:' ? 'tls' : starttls === 'yes' ? 'starttls' : 'none';
  const login =
    url.username === ''
      ? null
      : { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) };
  if (login && encryption === 'none' && !isLocal) return null;
  const to = (url.searchParams.get('to') ?? '').split(',').map((address) => address.trim());
  const from = url.searchParams.get('from') ?? to[0]!;
  if (to.length > RECIPIENTS_MAX || ![...to, from].every((address) => ADDRESS.test(address))) return null;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { host, port: url.port === '' ? PORTS[encryption] : Number(url.port), encryption, login, from, to };
}

/** Without the login. */
export function mailTargetText({ host, port, to }: MailTarget): string {
  return `${to.join(', ')} by ${host}:${port}`;
}
