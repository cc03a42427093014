/** Looks host names up. */
export interface Resolver {
  /** Addresses of a name; none when it has none, or the answer does not come in time. Never rejects. */
  addressesOf(hostname: string): Promise<string[]>;
}
