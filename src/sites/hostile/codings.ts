import zlib from 'node:zlib';
import { HTML, OK, pageOf, reply, sends } from './answers.ts';
import type { Behaviour } from './behaviour.ts';

/** Bodies that are not what their Content-Encoding says, or far more than they seem. */

const coded = (coding: string, body: Buffer | string) =>
  reply('200 OK', [HTML, `Content-Encoding: ${coding}`], body);

let bombMade: Buffer | null = null;

/** 64 members of 16 MB, packed when first asked for: that takes a moment. */
function gzipBomb(): Buffer {
  if (bombMade === null) {
    const member = zlib.gzipSync(Buffer.alloc(16 * 1024 * 1024), { level: 9 });
    bombMade = Buffer.concat(Array.from({ length: 64 }, () => member));
  }
  return bombMade;
}

/** 256 MB of zeros in 203 bytes, packed once and for all: that takes half a second. */
export const BROTLI_BOMB = Buffer.from(
  'z///fwAkAOKxQHLv//n//w+ABEAcFoDu/T////8BkACIwwLQvf/n//8/ABIAcVgAuvf//P//B0ACIA4LQPf+n////wBIAMRhAeje' +
    '//P//x8ACYA4LADd+3/+//8DIAEQhwWge//P//9/ACQA4rAAdO//+f//D4AEQBwWgO79P////wGQAIjDAtC9/+f//z8AEgBxWAC6' +
    '9//8//8HQAIgDgtA9/6f////AEgAxGEB6N7/8///HwAJgDgsAN37f/7//wMgARCHBaB7/z8=',
  'base64',
);

/** One raw block in a frame that asks its decoder for 128 MB of memory. */
function zstdOfLargeWindow(content: string): Buffer {
  const magic = [0x28, 0xb5, 0x2f, 0xfd];
  const withoutSize = 0x00;
  const windowLog27 = (27 - 10) << 3;
  const body = Buffer.from(content);
  const block = (body.length << 3) | 1;
  return Buffer.concat([
    Buffer.from([...magic, withoutSize, windowLog27, block & 255, (block >> 8) & 255, block >> 16]),
    body,
  ]);
}

function emptyFrames(): Buffer {
  const frame = zlib.zstdCompressSync(Buffer.alloc(0));
  return Buffer.concat(Array.from({ length: 100_000 }, () => frame));
}

function stacked(content: string, times: number): Buffer {
  let body = Buffer.from(content);
  for (let count = 0; count < times; count++) body = zlib.gzipSync(body);
  return coded(Array.from({ length: times }, () => 'gzip').join(', '), body);
}

const PAGE = pageOf('A coded page', `${'<p>Grüße aus dem Netz.</p>'.repeat(200)}`);

export const CODINGS: Behaviour[] = [
  {
    number: 1,
    name: 'gzip-bomb',
    cases: [
      {
        path: '',
        what: '1 MB of gzip that unpacks to 1 GB.',
        ending: 'too-large',
        answer: sends(() => coded('gzip', gzipBomb())),
      },
    ],
  },
  {
    number: 2,
    name: 'brotli-bomb',
    cases: [
      {
        path: '',
        what: '200 bytes of brotli that unpack to 256 MB.',
        ending: 'too-large',
        answer: sends(coded('br', BROTLI_BOMB)),
      },
    ],
  },
  {
    number: 3,
    name: 'zstd-large-window',
    cases: [
      {
        path: '',
        what: 'A small zstd frame that wants a window of 128 MB.',
        ending: 'bad-encoding',
        why: 'RFC 9659 allows 8 MB on the web.',
        answer: sends(() => coded('zstd', zstdOfLargeWindow(PAGE))),
      },
      {
        path: '/many-frames',
        what: '1 MB of empty zstd frames, 100,000 of them.',
        ending: 'bad-encoding',
        why: 'Each costs time, and none has content.',
        answer: sends(() => coded('zstd', emptyFrames())),
      },
    ],
  },
  {
    number: 4,
    name: 'six-stacked-codings',
    cases: [
      {
        path: '',
        what: 'gzip in gzip in gzip, six times.',
        ending: 'bad-encoding',
        why: 'No server needs more than three.',
        answer: sends(() => stacked(PAGE, 6)),
      },
    ],
  },
  {
    number: 5,
    name: 'unknown-coding',
    cases: [
      {
        path: '',
        what: 'A Content-Encoding that does not exist, on a page that is text.',
        ending: 'fetched',
        why: 'Browsers show it as it is.',
        answer: sends(() => coded('rot13', PAGE)),
      },
      {
        path: '/bytes',
        what: 'The same on bytes that are no text.',
        ending: 'bad-encoding',
        answer: sends(() => coded('rot13', zlib.gzipSync(PAGE))),
      },
      {
        path: '/charset',
        what: 'The name of a charset as Content-Encoding.',
        ending: 'fetched',
        answer: sends(() => coded('utf-8', PAGE)),
      },
    ],
  },
  {
    number: 6,
    name: 'false-coding',
    cases: [
      {
        path: '',
        what: 'Plain text that claims to be gzip.',
        ending: 'bad-encoding',
        answer: sends(() => coded('gzip', PAGE)),
      },
    ],
  },
  {
    number: 7,
    name: 'truncated-gzip',
    cases: [
      {
        path: '',
        what: 'The last bytes of a gzip body are missing; its length is that of what is there.',
        ending: 'truncated',
        answer: sends(() => coded('gzip', zlib.gzipSync(PAGE).subarray(0, -20))),
      },
      {
        path: '/chunked',
        what: 'The same in chunks that end properly.',
        ending: 'truncated',
        answer: sends(() => {
          const cut = zlib.gzipSync(PAGE).subarray(0, -20);
          return Buffer.concat([
            Buffer.from(`${OK}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n`),
            Buffer.from(`${cut.length.toString(16)}\r\n`),
            cut,
            Buffer.from('\r\n0\r\n\r\n'),
          ]);
        }),
      },
    ],
  },
];
