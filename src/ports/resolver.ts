/** Looks host names up. */
export interface Resolver {
  /** Addresses of a name; none when it has none, or they are not to be had in time. Never rejects. */
  addressesOf(hostname: string): Promise<string[]>;
}
