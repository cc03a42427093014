import { randomBytes } from 'node:crypto';
import { escapeHtml } from '../../core/text/escape-html.ts';
import { HTML, ownPage, pageOf, pours, replyPage, sends } from './answers.ts';
import type { Behaviour, HostileVisit } from './behaviour.ts';

/** Sites without end. */

const link = (url: string, text: string) => `<a href="${escapeHtml(url)}">${escapeHtml(text)}</a>\n`;

/** Every month leads to the next, and every day to a page. */
function calendarPage({ base, rest }: HostileVisit): Buffer {
  const [, year = 2000, month = 1, day = 0] = rest.split('/').map((part) => Number(part) || 0);
  if (day > 0) return replyPage(`${year}/${month}/${day}`);
  const next = month >= 12 ? `${base}/${year + 1}/1` : `${base}/${year}/${month + 1}`;
  const days = Array.from({ length: 28 }, (_, index) => `${base}/${year}/${month}/${index + 1}`);
  return replyPage(`${year}/${month}`, [], [next, ...days].map((url) => link(url, url)).join(''));
}

const freshId = () => randomBytes(16).toString('hex');

/** Five pages, which each visitor sees under addresses of his own. */
const inQuery = (visit: HostileVisit) => {
  const { base } = visit;
  const pages = [1, 2, 3, 4, 5].map((page) => link(`${base}/${page}?sid=${freshId()}`, `page ${page}`));
  return ownPage('A visitor', visit, pages.join(''));
};

const inPath = (visit: HostileVisit) => {
  const { base } = visit;
  const pages = [1, 2, 3, 4, 5].map((page) => link(`${base}/${freshId()}/${page}`, `page ${page}`));
  return ownPage('A visitor', visit, pages.join(''));
};

/** A link without its first slash: each page is one folder deeper. */
const deeper = (visit: HostileVisit) => ownPage('Deeper', visit, link('deeper/', 'deeper'));

const MILLION = 1_000_000;

/** 15 MB: as short as links can be, so that the page itself is not too large for a crawler. */
function* millionLinks({ base }: HostileVisit): Generator<Buffer> {
  yield Buffer.from(pageOf('A million links', `<base href="${base}/">`).replace(/<p id="end">[\s\S]*/, ''));
  let piece = '';
  for (let index = 0; index < MILLION; index++) {
    piece += `<a href=${index}>`;
    if (piece.length < 64 * 1024) continue;
    yield Buffer.from(piece);
    piece = '';
  }
  yield Buffer.from(`${piece}<p id="end">the end</p></body></html>\n`);
}

function* inChunks(pieces: Iterable<Buffer>): Generator<Buffer> {
  for (const piece of pieces) {
    yield Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
  }
  yield Buffer.from('0\r\n\r\n');
}

const sendMillion = pours(`HTTP/1.1 200 OK\r\n${HTML}\r\nTransfer-Encoding: chunked\r\n\r\n`, (visit) =>
  inChunks(millionLinks(visit)),
);

export const TRAPS: Behaviour[] = [
  {
    number: 45,
    name: 'calendar',
    cases: [
      {
        path: '',
        what: 'A calendar that goes on for ever, with a page for each day.',
        ending: 'fetched',
        why: 'Followed links that differ only in numbers have a budget.',
        trap: true,
        answer: sends(calendarPage),
      },
    ],
  },
  {
    number: 46,
    name: 'session-ids',
    cases: [
      {
        path: '/query',
        what: 'Each link has a new session id in its query.',
        ending: 'fetched',
        why: 'Followed links that differ only in values of the query have a budget.',
        trap: true,
        answer: sends(inQuery),
      },
      {
        path: '/path',
        what: 'Each link has a new session id in its path.',
        ending: 'fetched',
        why: 'Followed links that differ only in ids have a budget.',
        trap: true,
        answer: sends(inPath),
      },
      {
        path: '/deeper',
        what: 'Each page links to one that is a folder deeper.',
        ending: 'fetched',
        why: 'Paths that repeat a segment too often are not followed.',
        trap: true,
        answer: sends(deeper),
      },
    ],
  },
  {
    number: 47,
    name: 'million-links',
    cases: [
      {
        path: '',
        what: 'A page with a million links.',
        ending: 'fetched',
        why: 'The page is kept; links are taken up to a limit.',
        trap: true,
        answer: (visit) => {
          if (visit.rest === '') sendMillion(visit);
          else visit.socket.write(ownPage('One of a million', visit));
        },
      },
    ],
  },
];
