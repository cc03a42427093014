/** What a body is: by its first bytes for the well-known kinds, by its header where the two agree or bytes say little. */

type Signature = [type: string, ...parts: [offset: number, text: string][]];

/** Text stands for its latin-1 bytes. The first part stands at the start, so that the first byte finds candidates. */
const SIGNATURES: Signature[] = [
  ['application/pdf', [0, '%PDF-']],
  ['image/png', [0, '\x89PNG\r\n\x1a\n']],
  ['image/jpeg', [0, '\xff\xd8\xff']],
  ['image/gif', [0, 'GIF87a']],
  ['image/gif', [0, 'GIF89a']],
  ['image/webp', [0, 'RIFF'], [8, 'WEBP']],
  ['audio/wav', [0, 'RIFF'], [8, 'WAVE']],
  ['video/x-msvideo', [0, 'RIFF'], [8, 'AVI ']],
  ['image/bmp', [0, 'BM'], [6, '\0\0\0\0']],
  ['image/x-icon', [0, '\0\0\x01\0']],
  ['image/tiff', [0, 'II*\0']],
  ['image/tiff', [0, 'MM\0*']],
  ['image/jxl', [0, '\xff\x0a']],
  ['image/jxl', [0, '\0\0\0\x0cJXL \r\n\x87\n']],
  ['image/jp2', [0, '\0\0\0\x0cjP  \r\n\x87\n']],
  ['image/vnd.adobe.photoshop', [0, '8BPS\0']],
  ['video/webm', [0, '\x1a\x45\xdf\xa3']],
  ['audio/mpeg', [0, 'ID3']],
  ['audio/mpeg', [0, '\xff\xfb']],
  ['audio/mpeg', [0, '\xff\xf3']],
  ['audio/mpeg', [0, '\xff\xf2']],
  ['audio/mpeg', [0, '\xff\xfa']],
  ['audio/aac', [0, '\xff\xf1']],
  ['audio/aac', [0, '\xff\xf9']],
  ['audio/aiff', [0, 'FORM'], [8, 'AIF']],
  ['audio/midi', [0, 'MThd\0\0']],
  ['video/x-flv', [0, 'FLV\x01']],
  ['video/mpeg', [0, '\0\0\x01\xba']],
  ['video/mpeg', [0, '\0\0\x01\xb3']],
  ['video/x-ms-asf', [0, '\x30\x26\xb2\x75\x8e\x66\xcf\x11']],
  ['application/ogg', [0, 'OggS']],
  ['audio/flac', [0, 'fLaC']],
  ['application/zip', [0, 'PK\x03\x04']],
  ['application/zip', [0, 'PK\x05\x06']],
  ['application/gzip', [0, '\x1f\x8b']],
  ['application/zstd', [0, '\x28\xb5\x2f\xfd']],
  ['application/x-xz', [0, '\xfd7zXZ\0']],
  ['application/x-bzip2', [0, 'BZh'], [4, '1AY&SY']],
  ['application/x-7z-compressed', [0, '7z\xbc\xaf\x27\x1c']],
  ['application/vnd.rar', [0, 'Rar!\x1a\x07']],
  ['application/wasm', [0, '\0asm']],
  ['font/woff', [0, 'wOFF']],
  ['font/woff2', [0, 'wOF2']],
  ['font/otf', [0, 'OTTO']],
  ['font/ttf', [0, '\0\x01\0\0']],
  ['font/collection', [0, 'ttcf\0']],
];

const BY_FIRST_BYTE: Signature[][] = Array.from({ length: 256 }, () => []);
for (const signature of SIGNATURES) BY_FIRST_BYTE[signature[1]![1].charCodeAt(0)]!.push(signature);

const MP4_BRANDS: Record<string, string> = {
  avif: 'image/avif',
  avis: 'image/avif',
  heic: 'image/heic',
  heix: 'image/heic',
  hevc: 'image/heic',
  msf1: 'image/heif',
  mif1: 'image/heif',
  'M4A ': 'audio/mp4',
  'M4B ': 'audio/mp4',
  'qt  ': 'video/quicktime',
  '3gp4': 'video/3gpp',
  '3gp5': 'video/3gpp',
  '3gp6': 'video/3gpp',
};

const TAR_MAGIC_AT = 257;
/** Bytes looked at for text; enough for a comment or two before the root element. */
const HEAD_BYTES = 1_024;
const BINARY_CHARACTER = /[\0-\x08\x0b\x0e-\x1a\x1c-\x1f]/;

function standsAt(bytes: Uint8Array, offset: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[offset + i] !== text.charCodeAt(i)) return false;
  return true;
}

function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1', start, end);
}

function sniffBinary(bytes: Uint8Array): string | null {
  for (const [type, ...parts] of BY_FIRST_BYTE[bytes[0]!]!) {
    if (!parts.every(([offset, text]) => standsAt(bytes, offset, text))) continue;
    return type === 'video/webm' && !latin1(bytes, 0, 64).includes('webm') ? 'video/x-matroska' : type;
  }
  if (standsAt(bytes, 4, 'ftyp')) return MP4_BRANDS[latin1(bytes, 8, 12)] ?? 'video/mp4';
  return standsAt(bytes, TAR_MAGIC_AT, 'ustar') ? 'application/x-tar' : null;
}

const HTML_START =
  /^<(?:!doctype html|!--|(?:html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p|meta|link|main|section|header|nav)[\s>/])/i;
const HTML_FOR_SURE = /^<(?:!doctype html|html)[\s>]/i;
const XML_ROOT = /<(rss|feed|svg|html|rdf:RDF|!DOCTYPE html)[\s>]/;
const XML_TYPES: Record<string, string> = {
  rss: 'application/rss+xml',
  'rdf:RDF': 'application/rss+xml',
  feed: 'application/atom+xml',
  svg: 'image/svg+xml',
  html: 'application/xhtml+xml',
  '!DOCTYPE html': 'application/xhtml+xml',
};
const XML_START = /^<(?:\?xml\s|rss[\s>]|feed[\s>]|svg[\s>]|urlset[\s>]|sitemapindex[\s>])/;
const JSON_START = /^(?:\{\s*(?:"|\})|\[\s*(?:[{["\]\-\d]|true|false|null))/;

/** Comments are stepped over one by one: a pattern for any number of them would try 2^n ways on a hostile page. */
function isHtmlForSure(head: string): boolean {
  let rest = head;
  while (rest.startsWith('<!--')) {
    const end = rest.indexOf('-->', 2);
    if (end === -1) return false;
    rest = rest.slice(end + 3).trimStart();
  }
  return HTML_FOR_SURE.test(rest);
}

/** The kind of text at the start of `head`, or null when it is just text. */
function sniffText(head: string): string | null {
  const code = head.charCodeAt(0);
  if (code === 60) {
    if (XML_START.test(head)) return XML_TYPES[XML_ROOT.exec(head)?.[1] ?? ''] ?? 'application/xml';
    return HTML_START.test(head) ? 'text/html' : null;
  }
  return (code === 123 || code === 91) && JSON_START.test(head) ? 'application/json' : null;
}

/** Type and subtype in lower case; null for what says nothing. */
function essenceOf(declared: string | null): string | null {
  if (declared === null) return null;
  const semicolonAt = declared.indexOf(';');
  const type = (semicolonAt === -1 ? declared : declared.slice(0, semicolonAt)).trim().toLowerCase();
  if (!/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type)) return null;
  return /^(?:application|binary)\/(?:octet-stream|unknown|x-unknown-content-type|force-download)$|^unknown\//.test(
    type,
  )
    ? null
    : type;
}

const isXml = (type: string) => type.endsWith('+xml') || type.endsWith('/xml');
const isJson = (type: string) => type.endsWith('+json') || type.endsWith('/json');
const isBinaryKind = (type: string) =>
  /^(?:image|audio|video|font)\/(?!svg)|\/(?:pdf|zip|gzip|wasm)$/.test(type);

/** Without their signature these are nothing: no program would show them. */
const ALWAYS_SIGNED = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

/** Whether the header may be right about bytes that say `found`, and is then the more precise of the two. */
function agreesWithBinary(declared: string, found: string): boolean {
  const kind = declared.slice(0, declared.indexOf('/'));
  switch (found) {
    case 'application/zip':
    case 'application/gzip':
      return (
        kind === 'application' &&
        !isXml(declared) &&
        !isJson(declared) &&
        !/pdf|javascript|wasm/.test(declared)
      );
    case 'application/ogg':
    case 'video/mp4':
    case 'video/webm':
    case 'video/x-matroska':
      return kind === 'audio' || kind === 'video';
    case 'image/heif':
    case 'image/tiff':
      return kind === 'image';
    case 'image/x-icon':
      return declared === 'image/vnd.microsoft.icon';
    default:
      return false;
  }
}

function decideText(declared: string, found: string | null, head: string): string {
  if (isHtml(declared)) return found === null || isHtml(found) ? declared : found;
  if (isXml(declared)) {
    if (found === 'application/json') return found;
    if (found === 'text/html') return isHtmlForSure(head) ? found : declared;
    const isVague = declared === 'text/xml' || declared === 'application/xml';
    return isVague && found !== null && found !== 'application/xml' ? found : declared;
  }
  if (isBinaryKind(declared)) {
    if (!BINARY_CHARACTER.test(head)) return found ?? 'text/plain';
    return found ?? (ALWAYS_SIGNED.has(declared) ? 'application/octet-stream' : declared);
  }
  // A page in place of a style sheet or of data is most often an error page. Plain text may well be the source of one.
  return declared !== 'text/plain' && isHtmlForSure(head) ? 'text/html' : declared;
}

/** The essence of the media type; null for an empty body that nothing was said about. */
export function sniffMediaType(bytes: Uint8Array, declared: string | null): string | null {
  const claim = essenceOf(declared);
  if (bytes.byteLength === 0) return claim ?? (declared === null ? null : 'application/octet-stream');
  const binary = sniffBinary(bytes);
  if (binary !== null) return claim !== null && agreesWithBinary(claim, binary) ? claim : binary;
  const raw = latin1(bytes, 0, HEAD_BYTES);
  const isWide = raw.startsWith('\xff\xfe') || raw.startsWith('\xfe\xff');
  const head = (
    isWide ? raw.replaceAll('\0', '').slice(2) : raw.startsWith('\xef\xbb\xbf') ? raw.slice(3) : raw
  ).trimStart();
  const found = sniffText(head);
  if (claim === null)
    return found ?? (BINARY_CHARACTER.test(head) ? 'application/octet-stream' : 'text/plain');
  if (claim === 'text/plain' && BINARY_CHARACTER.test(head)) return 'application/octet-stream';
  return decideText(claim, found, head);
}

export function isHtml(type: string | null): boolean {
  return type === 'text/html' || type === 'application/xhtml+xml';
}
