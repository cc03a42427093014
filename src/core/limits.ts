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
  /** Larger objects are films; a job may ask for them. */
  mediaBytesMax: 2 * 1024 ** 3,
  /** Objects up to this size are held in memory; larger ones are streamed to their blob. */
  mediaBufferBytes: 4 * 1024 * 1024,
  /** Files up to this size are written within one call: about 0.1 ms, and no more than reading as much from a socket. */
  fileAtOnceBytesMax: 256 * 1024,
  /** The protocol's own limits, for sitemaps: 50 MB unzipped, 50,000 URLs, index files one level deep (we allow three). */
  sitemapBytesMax: 52_428_800,
  sitemapUrlsMax: 50_000,
  sitemapDepthMax: 3,
  /** Elements inside elements: sitemaps need 5, feeds with pages in them some 30. */
  sitemapNestingMax: 100,
  /** One title, caption or date of an entry, and all that an entry says about its page: it travels with the task. */
  sitemapTextMax: 512,
  sitemapMetaCharsMax: 8_192,
  /** A line, a CSV row with its quotes, or the columns of a Parquet row: larger ones are damage, or pages in a table. */
  sourceRowBytesMax: 1024 * 1024,
  /** Rejected rows that are written down, some 200,000; the counter has them all. */
  rejectFileBytesMax: 32 * 1024 * 1024,
  /** After a malformed CSV row its text is read again: this much, and this many times what was read before it. */
  csvReadAgainBytes: 16 * 1024 * 1024,
  csvReadAgainTimes: 4,
  /** A query without an end would fill the disk; nobody's list is this long. */
  queryRowsMax: 100_000_000,
  /** Real footers of Parquet files have a few KB for each row group. */
  parquetFooterBytesMax: 64 * 1024 * 1024,
  /** Pages are about 1 MB; some writers make one of a whole column, and nobody makes one of this. */
  parquetPageBytesMax: 256 * 1024 * 1024,
  /** A column of one value for millions of rows is a single page of a few bytes. */
  parquetPageValuesMax: 20_000_000,
  /** Heap of the thread that unpacks Parquet: damaged run lengths would otherwise fill the machine. */
  parquetHeapMb: 1024,
  /** A page takes milliseconds; damaged counts can make a loop endless. */
  parquetStallMs: 60_000,
  headerBytesMax: 64 * 1024,
  /** What may come beside a body: heads, and for each of its bytes as much as the smallest chunks need, three times over. */
  framingBytesMax: 2 * 1024 * 1024,
  framingRatioMax: 16,
  /** Hosts, and URL templates of each, whose working ways of asking are remembered; others go by their host. */
  escalationHostsMax: 20_000,
  escalationTemplatesMax: 100,
  /** Read when a run begins: a few MB. */
  escalationRowsMax: 50_000,
  /** Refused tasks that wait for another way; a task that is forgotten begins again at the bottom. */
  escalationTasksMax: 50_000,
  /** Origins and identities whose cookies are kept. */
  cookieJarsMax: 5_000,
  /** As in browsers: longer ones are ignored, and of an origin's many only the newest are kept. */
  cookieBytes: 4_096,
  cookiesPerJar: 50,
  /** All cookies of an origin and identity, as servers take them in one header; they travel with every batch. */
  cookieJarBytes: 8 * 1024,
  contentCodingsMax: 3,
  /** Frames of one zstd body: each takes 40 µs however empty it is, and a megabyte has room for 100,000. */
  zstdFramesMax: 256,
  /** Links taken from one page; a page with a million links is a trap or a sitemap. */
  linksPerPageMax: 10_000,
  /** Links in one part of a report: a sitemap may have 50,000, which would keep all others waiting for seconds. */
  linksPerReport: 5_000,
  /** Elements inside elements, as in Chromium: deeper ones become siblings. */
  nestingMax: 512,
  /** Elements and texts of a page's tree, 300 bytes each; the rest of the page is not looked at. */
  nodesMax: 400_000,
  /** Text that a regular expression of a job looks at: at worst half a second for each million characters. */
  regexTextMax: 2_000_000,
  /** Markdown of a page, in characters: a book of 500 pages, and with its escapes it fits into a record. */
  markdownCharsMax: 1_000_000,
  /** Lists and quotes inside each other; deeper ones are written flat, or every line would start with a mile of spaces. */
  markdownNestingMax: 16,
  /** Columns of a Markdown table: colspan may say 1,000. */
  markdownColumnsMax: 64,
  /** Where tags that speak to robots are looked for; heads with style sheets inside are long. */
  robotsTagsCharsMax: 1024 * 1024,
  /** Of a page that may need scripts: what its shell says, it says early; style sheets and data may stand before it. */
  shellCharsMax: 512 * 1024,
  /** HTML of a page that failed in a browser, for people. */
  snapshotBytesMax: 4 * 1024 * 1024,
  /** Pictures on one page of a contact sheet: a browser shows so many at ease. */
  sheetShotsMax: 2_000,
  /** Pages of a contact sheet: beyond half a million pictures nobody looks. */
  sheetPagesMax: 250,
  recordsPerTaskMax: 10_000,
  recordBytesMax: 4 * 1024 * 1024,
  /** Lists and objects inside each other in a record or in `meta`: SQLite reads JSON of 1,000 levels, other readers of fewer. */
  dataNestingMax: 200,
  /** Fields counted by route for the quality of records; names made from data would have no end. */
  qualityFieldsMax: 500,
  /** Pages named as showing one object in the media index: a logo is on every page of a site. */
  referrersMax: 10_000,
  /** Fields of records that are told apart in tables and comparisons; more are names that a site chose. */
  tableFieldsMax: 1_000,
  /** Values of one field of a page, items of one list: more is a trap, and would not fit a record anyway. */
  valuesPerFieldMax: 10_000,
  /** Nodes and characters looked at by all selectors of one page together: a second or two. Nested ones could ask for n². */
  treeStepsMax: 50_000_000,
  /** Characters passed over by one pattern that wants every match, were each to look at all that is left: some seconds. */
  regexStepsMax: 64_000_000,
  /** Longer texts are no numbers, amounts or dates; a pattern or a closer selector finds those inside. */
  typedTextMax: 1_000,
  /** Characters of one JSON-LD block, and objects looked at in all blocks of a page. */
  jsonLdLengthMax: 1024 * 1024,
  jsonLdNodesMax: 10_000,
  /** As long as a URL, which is what keys are otherwise. */
  recordKeyLengthMax: 2_048,
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
  /** Proxies of one pool: real lists have hundreds, and a gateway stands for millions of addresses. */
  proxiesPerPoolMax: 10_000,
  /** Pairs of proxy and host whose health is remembered, some 200 bytes each; the least recently used are forgotten. */
  proxyHostsMax: 100_000,
  /** Proxies that a task may go through: so many can fail before the task is given back. */
  proxiesPerTask: 3,
  /** Proxies among which each worker finds its own. */
  proxiesPerWorkerChoice: 16,
  /** Answer of a batch API: some fifty large pages, as text in JSON. */
  apiAnswerBytesMax: 64 * 1024 * 1024,
  /** Answers that an API sends by itself: so many are held at once, and so many may be under way. */
  apiCallbacksAtOnce: 4,
  apiCallbackConnectionsMax: 64,
  /** What a proxy may say before it is through, and how long it may rest. */
  proxyReplyBytesMax: 16 * 1024,
  proxyRestMsMax: 3_600_000,
  /** Origins whose links a worker remembers. */
  originsRememberedMax: 10_000,
  dnsTtlMs: 60_000,
  /** All that one page may load in a browser: far more than any page needs, and less than a film. */
  browserPageBytesMax: 256 * 1024 * 1024,
  /** As in browsers. */
  browserSocketsPerHost: 6,
  /** Where scripts or `meta refresh` lead on the same host, again and again. */
  browserNavigationsMax: 10,
  /** WebP has no larger pictures, Chromium draws none, and viewers open none. */
  screenshotHeightMax: 16_000,
  /** In one browser: one is drawn while the other is packed. */
  shotsAtOnceMax: 2,
  /** Of a picture or a print. */
  shotBytesMax: 64 * 1024 * 1024,
  /** Screens that "to the end" goes down at most: lists without end have none. */
  scrollScreensMax: 200,
  /** All that is captured of one page. */
  captureBytesMax: 16 * 1024 * 1024,
  /** Answers and sockets of one page that a capture waits for at once. */
  capturesOpenMax: 1_000,
  /** Cookies and storage of a logged-in browser. */
  loginStateBytesMax: 4 * 1024 * 1024,
  /** A browser is replaced after so many pages, so long, or at so much memory, whatever it is at fault for. */
  browserPagesMax: 500,
  /** Playwright remembers some 50 KB of each page for as long as its tab is open. */
  browserTabPagesMax: 100,
  browserAgeMsMax: 30 * 60_000,
  browserMemoryBytesMax: 2 * 1024 ** 3,
  /** What a page takes, roughly: as many are open at once as fit into half of the free memory. */
  browserPageMemoryBytes: 200 * 1024 ** 2,
  browserParallelMax: 16,
  /** The least that S3 takes for a part, so the most that a writer of a blob must hold; smaller blobs are one request. */
  s3PartBytes: 5 * 1024 * 1024,
  /** One on its way while the next is gathered. */
  s3PartsInFlight: 2,
  /** S3's own limit. */
  s3PartsMax: 10_000,
  /** S3 copies up to 5 GB in one request; a copy of more than this could be silent for too long. */
  s3CopyBytesMax: 1024 ** 3,
  s3CopyPartBytes: 512 * 1024 ** 2,
  /** An export is one file of up to 10,000 parts, so 160 GB. */
  s3ExportPartBytes: 16 * 1024 * 1024,
  s3ExportPartsInFlight: 4,
  /** What a writer left behind is removed when it is this old: no batch lasts a day. */
  temporaryAgeMsMax: 24 * 3_600_000,
  /** Strings kept by each duplicate prefilter: about 8 MB a generation at 100 bytes a URL. */
  recentUrlsMax: 50_000,
  /** Lambda carries 6,291,456 bytes each way; the rest is room for what stands around a batch or a report. */
  lambdaPayloadBytes: 6_000_000,
  /** What a packed batch or part may be unpacked to: damage must not fill the memory. */
  wireBytesMax: 256 * 1024 * 1024,
  /** Links, records and tasks of one part of an answer that comes all at once: a transaction of a second or so. */
  partItemsMax: 20_000,
} as const;
