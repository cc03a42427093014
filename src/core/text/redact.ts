/** Keeps secrets out of whatever people read: logs, errors, reports. */

const HIDDEN = '***';
/** Shorter ones would be found in ordinary words. */
const SECRET_LENGTH_MIN = 4;

/** `http://user:password@host/` without what stands before the `@`, wherever it is in a text. */
export function hideCredentials(text: string): string {
  if (!text.includes('@')) return text;
  return text.replace(/([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/?#]{1,2000}@/gi, `$1${HIDDEN}@`);
}

export type Redact = (text: string) => string;

/** Hides the given secrets in every form in which they travel, and credentials in URLs. */
export function makeRedact(secrets: Iterable<string>): Redact {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < SECRET_LENGTH_MIN) continue;
    for (const form of [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]) {
      forms.add(form);
    }
    forms.add(Buffer.from(secret).toString('base64'));
  }
  // Longer ones first: one secret may be part of another.
  const ordered = [...forms].sort((a, b) => b.length - a.length);
  return (text) => {
    let clean = hideCredentials(text);
    for (const form of ordered) if (clean.includes(form)) clean = clean.replaceAll(form, HIDDEN);
    return clean;
  };
}
