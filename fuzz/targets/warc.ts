import { gunzipSync } from 'node:zlib';
import { WARCParser } from 'warcio';
import { gzipFast, gzipStored, gzipWithZlib } from '../../src/core/warc/gzip.ts';
import {
  encodeResource,
  encodeResponseRecord,
  encodeWarcinfo,
  recordBytes,
} from '../../src/core/warc/warc.ts';
import { parseRecord, readResponse, WarcError } from '../../src/core/warc/warc-reader.ts';
import { HOSTILE_TEXTS } from '../hostile-texts.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * Records of an archive: written ones can be read again, damaged ones are refused, and what is accepted is the same to
 * warcio. Every input is packed and unpacked as well.
 */

const ID = '6b1f4a1e-6c1a-4d6e-9d3b-0a1b2c3d4e5f';
const PIECES = [
  '\r\n',
  '\r\n\r\n',
  'Content-Length: 0',
  'WARC-Type: response',
  ': ',
  'HTTP/1.1 200',
  '\0',
  'sha1:',
  'sha256:',
  'Content-Encoding: gzip\r\n',
];
const NAMES = [
  'Content-Type',
  'Content-Length',
  'Transfer-Encoding',
  'Content-Encoding',
  'X-Two',
  'x y',
  'X:Y',
  '',
  ...HOSTILE_TEXTS,
];

function record(random: Random): Buffer {
  const body = Buffer.from(
    random.text(0, 40, () => random.pick(['<p>', 'text ', '\r\n', '\0', 'é', '</p>', 'x'.repeat(50)])),
  );
  const about = {
    url: `https://a.example/${random.pick(['', 'é', 'a b', '<>', ...HOSTILE_TEXTS])}`,
    date: 1_700_000_000_000 + random.below(1e9),
    recordId: ID,
  };
  const encoded = random.oneIn(6)
    ? encodeWarcinfo({
        ...about,
        filename: random.pick(HOSTILE_TEXTS),
        fields: Object.fromEntries(random.list(0, 3, () => [random.pick(NAMES), random.pick(HOSTILE_TEXTS)])),
      })
    : random.oneIn(6)
      ? encodeResource({
          ...about,
          kind: 'screenshot',
          type: random.pick(['image/png', 'a\r\nb']),
          body,
          concurrentTo: ID,
        })
      : encodeResponseRecord({
          ...about,
          status: random.pick([200, 404, 0, 999]),
          statusText: random.pick(['OK', '', ...HOSTILE_TEXTS]),
          rawHeaders: random
            .list(0, 6, () => [
              random.pick(NAMES),
              random.pick([...HOSTILE_TEXTS, String(body.length), '5', 'gzip', 'chunked']),
            ])
            .flat(),
          wireBody: body,
        });
  return recordBytes(encoded);
}

export function openWarcTarget(): Target {
  return {
    generate(random) {
      const bytes = record(random);
      // Most changes break the record at once; a single one leaves the most to find.
      return random.oneIn(3) ? bytes : mutate(bytes, random, PIECES, 2);
    },
    async check(input) {
      for (const packed of [gzipFast(input, input), gzipStored(input), gzipWithZlib(input)])
        must(
          packed === null || gunzipSync(packed).equals(input),
          'packed bytes are not the same when unpacked',
        );
      const read = accepted(() => parseRecord(input));
      if (read === null) return;
      const response = read.type === 'response' ? accepted(() => readResponse(read)) : null;
      const other = await WARCParser.parse(new Blob([new Uint8Array(input)]).stream());
      must(other !== null, 'warcio finds no record');
      // It guesses what letters beyond ASCII are.
      if (/^[\x20-\x7e]*$/.test(read.type)) mustEqual(other.warcType, read.type, 'type');
      if (/^[\x20-\x7e]+$/.test(read.url ?? '')) mustEqual(other.warcTargetURI, read.url, 'URI');
      const payload = Buffer.from(await other.readFully(false));
      // Without any header line warcio finds no body.
      if (response === null || response.headers.length === 0) return;
      mustEqual(other.httpHeaders?.statusCode, response.status, 'status');
      must(payload.equals(response.body), 'warcio reads another body');
    },
  };
}

function accepted<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof WarcError) return null;
    throw error;
  }
}
