import { pageOf, reply, replyPage, sends } from './answers.ts';
import type { Behaviour, HostileVisit } from './behaviour.ts';

/** Text in other letters than it says, and answers about pages that have not changed. */

/** What a reader must find, in whatever letters it came. */
export const UMLAUTS = 'Größe und Maß';

const typed = (charset: string | null, body: Buffer) =>
  reply('200 OK', [`Content-Type: text/html${charset === null ? '' : `; charset=${charset}`}`], body);

const utf16 = (text: string) => Buffer.from(text, 'utf16le');
const BOM_16 = Buffer.from([0xff, 0xfe]);
const BOM_8 = Buffer.from([0xef, 0xbb, 0xbf]);
const PAGE = pageOf(UMLAUTS);

function notModified({ count, headers }: HostileVisit): Buffer {
  if (count === 1 || !headers.has('if-none-match')) return replyPage('Not changed', ['ETag: "one"']);
  const changed = pageOf('Changed all the same');
  return Buffer.from(`HTTP/1.1 304 Not Modified\r\nETag: "one"\r\n\r\n${changed}`);
}

export const TEXTS: Behaviour[] = [
  {
    number: 39,
    name: 'charset',
    cases: [
      {
        path: '/lying',
        what: 'UTF-8 with a byte order mark, which the header calls latin-1.',
        ending: 'fetched',
        answer: sends(typed('iso-8859-1', Buffer.concat([BOM_8, Buffer.from(PAGE)]))),
      },
      {
        path: '/utf-16',
        what: 'UTF-16 that only its byte order mark gives away.',
        ending: 'fetched',
        answer: sends(typed(null, Buffer.concat([BOM_16, utf16(PAGE)]))),
      },
      {
        path: '/bom-clash',
        what: 'UTF-16 with its byte order mark, which the header calls UTF-8.',
        ending: 'fetched',
        answer: sends(typed('utf-8', Buffer.concat([BOM_16, utf16(PAGE)]))),
      },
      {
        path: '/unknown',
        what: 'A charset that does not exist, and a meta element that knows better.',
        ending: 'fetched',
        answer: sends(
          typed('klingon', Buffer.from(PAGE.replace('<head>', '<head><meta charset="latin1">'), 'latin1')),
        ),
      },
    ],
  },
  {
    number: 40,
    name: 'not-modified',
    cases: [
      {
        path: '/unasked',
        what: '304 to a request that had no validator.',
        ending: 'bad-status',
        why: 'There is no earlier answer that it could mean.',
        answer: sends('HTTP/1.1 304 Not Modified\r\nETag: "none"\r\n\r\n'),
      },
      {
        path: '/changed-body',
        what: '304 at the second visit, with a new page behind it.',
        ending: 'fetched',
        again: 'unchanged',
        why: 'A 304 has no body; what follows is no answer to anything.',
        answer: sends(notModified),
      },
    ],
  },
];
