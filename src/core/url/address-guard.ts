/** Whether an address may be dialled; null permits every address. */
export type AddressCheck = ((ip: string) => boolean) | null;

/**
 * Decides about every address that is dialled for a job. It is asked when a connection is made, with the address that
 * the name resolved to.
 */
export interface AddressGuard {
  /** Where URLs of pages lead, and where any server redirects to. `jobAllows`: the job says `allowPrivate`. */
  pages(jobAllows: boolean): AddressCheck;
  /**
   * What the author of a job names: proxies, scraping APIs, servers of source files. They are often in the own network,
   * and no site can choose them, so they need no `allowPrivate`. `jobAllows`: false for a job that says
   * `privateServices: false`, as those of strangers do.
   */
  services(jobAllows: boolean | undefined): AddressCheck;
}

/** `forbidsPrivate`: the operator refuses private addresses, whatever a job says. */
export function makeAddressGuard(
  isPublicAddress: (ip: string) => boolean,
  forbidsPrivate: boolean,
): AddressGuard {
  return {
    pages: (jobAllows) => (jobAllows && !forbidsPrivate ? null : isPublicAddress),
    services: (jobAllows = true) => (jobAllows && !forbidsPrivate ? null : isPublicAddress),
  };
}
