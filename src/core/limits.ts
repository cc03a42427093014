/** Everything has a limit. Each has its reason beside it; settings may lower most of them. */
export const LIMITS = {
  /** Longer URLs are traps far more often than pages; browsers and sitemaps stop near 2,048. */
  urlLengthMax: 2_048,
  /** A path that repeats one segment this often is a relative-link trap. */
  segmentRepeatsMax: 4,
  /** Browsers stop at 20, RFC 9309 asks for 5 on robots.txt. */
  redirectsMax: 10,
  robotsRedirectsMax: 5,
  /** RFC 9309: at least 500 KiB must be parsed; the rest is ignored. */
  robotsBytesMax: 500 * 1024,
  /** RFC 9309: a cached robots.txt should not be used for longer than a day. */
  robotsAgeMsMax: 24 * 3_600_000,
  /** Nobody's minutes-long delay may freeze a host for a year. */
  crawlDelayMsMax: 60_000,
  retryAfterMsMax: 300_000,
  /** Pages beyond this are downloads, not pages. */
  bodyBytesMax: 16 * 1024 * 1024,
  /** gzip reaches 1,032:1 and brotli far more; real pages stay under 40:1. */
  decodedRatioMax: 250,
  /** Below this many decoded bytes the ratio is not looked at: tiny pages may compress well. */
  decodedRatioFloorBytes: 1024 * 1024,
  headerBytesMax: 64 * 1024,
  contentCodingsMax: 3,
  /** Links taken from one page; a page with a million links is a trap or a sitemap. */
  linksPerPageMax: 10_000,
  recordsPerTaskMax: 10_000,
  recordBytesMax: 4 * 1024 * 1024,
  /** Text of a failure kept in the store. */
  failureDetailMax: 500,
  /** A task whose worker died this often, the last times alone, is what kills it. */
  lossesMax: 3,
  batchTasksMax: 1_000,
  /** A batch's pages are written out whenever this much has gathered. */
  archiveBufferBytes: 1024 * 1024,
  /** Longest stretch that one permit may reserve of a host, so that a dead worker costs no more. */
  permitMsMax: 10_000,
  /** Origins with open connections in one worker; the least recently used are closed. */
  originsPerWorkerMax: 256,
  /** A dead host is asked again at least this often. */
  hostRestMsMax: 600_000,
  dnsEntriesMax: 10_000,
  /** Origins whose links a worker remembers. */
  originsRememberedMax: 10_000,
  dnsTtlMs: 60_000,
  /** Strings kept by each duplicate prefilter: about 8 MB a generation at 100 bytes a URL. */
  recentUrlsMax: 50_000,
} as const;
