/**
 * Limits that two or more rooms share, each with its reason; settings may lower most of them.
 * A limit that one room enforces is a constant beside the code that enforces it.
 */
export const LIMITS = {
  /** Longer URLs are traps far more often than pages; browsers and sitemaps stop near 2,048. */
  urlLengthMax: 2_048,
  /** Browsers stop at 20, RFC 9309 asks for 5 on robots.txt. */
  redirectsMax: 10,
  /** RFC 9309: at least 500 KiB must be parsed; the rest is ignored. */
  robotsBytesMax: 500 * 1024,
  /** Pages beyond this are downloads, not pages. */
  bodyBytesMax: 16 * 1024 * 1024,
  /** gzip reaches 1,032:1 and brotli far more; real pages stay under 40:1. */
  decodedRatioMax: 250,
  /** Below this many decoded bytes the ratio is not looked at: tiny pages may compress well. */
  decodedRatioFloorBytes: 1024 * 1024,
  /** The limit of the sitemap protocol: 50 MB unzipped. */
  sitemapBytesMax: 52_428_800,
  /** A line, a CSV row with its quotes, or the columns of a Parquet row: larger ones are damage, or pages in a table. */
  sourceRowBytesMax: 1024 * 1024,
  /** A query without an end would fill the disk; no real list is this long. */
  queryRowsMax: 100_000_000,
  /** All header lines of one answer: real ones have a few KB. */
  headerBytesMax: 64 * 1024,
  /** As in browsers: of an origin's many only the newest are kept. */
  cookiesPerJar: 50,
  /** All cookies of an origin and identity, as servers take them in one header; they travel with every batch. */
  cookieJarBytes: 8 * 1024,
  /** Codings around one body: real ones have one, at most two. */
  contentCodingsMax: 3,
  /** One record as JSON: larger ones are pages inside records. */
  recordBytesMax: 4 * 1024 * 1024,
  /** Lists and objects inside each other in a record or in `meta`: SQLite reads JSON of 1,000 levels, other readers of fewer. */
  dataNestingMax: 200,
  /** Fields counted by route for the quality of records; names made from data would have no end. */
  qualityFieldsMax: 500,
  /** Fields of records that are told apart in tables and comparisons; more are names that a site chose. */
  tableFieldsMax: 1_000,
  /** Longest stretch that one permit may reserve of a host, so that a dead worker costs no more. */
  permitMsMax: 10_000,
  /** A dead host is asked again at least this often. */
  hostRestMsMax: 600_000,
  /** Pairs of proxy and host whose health is remembered, some 200 bytes each; the least recently used are forgotten. */
  proxyHostsMax: 100_000,
  /** Proxies that a task may go through: so many can fail before the task is given back. */
  proxiesPerTask: 3,
  /** A failing proxy is tried again at least this often. */
  proxyRestMsMax: 3_600_000,
  /** Cookies and storage of a logged-in browser. */
  loginStateBytesMax: 4 * 1024 * 1024,
  /** Strings kept by each duplicate prefilter: about 8 MB a generation at 100 bytes a URL. */
  recentUrlsMax: 50_000,
  /** What a packed batch or part may be unpacked to: damage must not fill the memory. */
  wireBytesMax: 256 * 1024 * 1024,
  /** Links, records and tasks of one part of an answer that comes all at once: a transaction of a second or so. */
  partItemsMax: 20_000,
} as const;
