/** User-Agent headers of browsers as often as they are met in the world. */
export interface UserAgents {
  /** Without end, and the same for the same seed. */
  drawn(seed: number, device: 'desktop' | 'mobile'): Iterable<string>;
}
