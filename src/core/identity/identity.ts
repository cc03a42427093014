export const VERSION = '0.1.0';

/** Honest by default: who we are, and where to complain. */
export function defaultUserAgent(contact: string | undefined): string {
  return contact ? `Seine/${VERSION} (+${contact})` : `Seine/${VERSION}`;
}
