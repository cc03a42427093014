import {
  after,
  endless,
  OK,
  pageOf,
  pours,
  replyPage,
  sends,
  sendsThenEnds,
  sendsThenResets,
} from './answers.ts';
import type { Behaviour } from './behaviour.ts';

/** Bodies whose end is not where the head says, or is said in two ways. */

const PAGE = pageOf('A page of some length', '<p>Text.</p>'.repeat(100));
const READ_AGAIN = 'Browsers read it. So does a second request on a connection of its own.';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
const lengthOf = (bytes: number) => `Content-Length: ${bytes}\r\n`;

export const FRAMING: Behaviour[] = [
  {
    number: 8,
    name: 'short-content-length',
    cases: [
      {
        path: '',
        what: 'The connection closes before as many bytes as the Content-Length have come.',
        ending: 'truncated',
        answer: sendsThenEnds(`${OK}${lengthOf(PAGE.length + 1_000)}\r\n${PAGE}`),
      },
      {
        path: '/reset',
        what: 'The same with a reset.',
        ending: 'reset',
        answer: sendsThenResets(`${OK}${lengthOf(PAGE.length + 1_000)}\r\n${PAGE}`),
      },
      {
        path: '/longer-body',
        what: 'A whole page by its Content-Length, and behind it a second response without a request.',
        ending: 'fetched',
        why: 'The page is complete; what follows belongs to no request, and the connection is not used again.',
        answer: sends(Buffer.concat([replyPage('Asked for'), replyPage('Smuggled')])),
      },
    ],
  },
  {
    number: 9,
    name: 'close-without-length',
    cases: [
      {
        path: '',
        what: 'A body without a length, ended by closing the connection.',
        ending: 'fetched',
        why: 'HTTP allows it: the end of the connection is the end of the body.',
        answer: sendsThenEnds(`${OK}\r\n${PAGE}`),
      },
    ],
  },
  {
    number: 10,
    name: 'reset-without-length',
    cases: [
      {
        path: '',
        what: 'A body without a length, ended by a reset.',
        ending: 'reset',
        answer: sendsThenResets(`${OK}\r\n${PAGE}`),
      },
    ],
  },
  {
    number: 11,
    name: 'truncated-chunks',
    cases: [
      {
        path: '',
        what: 'The connection closes in the middle of a chunk.',
        ending: 'truncated',
        answer: sendsThenEnds(`${CHUNKED}1000\r\n${PAGE.slice(0, 500)}`),
      },
      {
        path: '/no-last-chunk',
        what: 'The connection closes after a whole chunk, without the last, empty one.',
        ending: 'truncated',
        answer: sendsThenEnds(`${CHUNKED}${PAGE.length.toString(16)}\r\n${PAGE}\r\n`),
      },
      {
        path: '/trailers',
        what: 'A whole body, and then trailers without end.',
        ending: 'protocol',
        answer: pours(`${CHUNKED}${PAGE.length.toString(16)}\r\n${PAGE}\r\n0\r\n`, () =>
          endless('X-Trailer: a\r\n'.repeat(4_000)),
        ),
      },
    ],
  },
  {
    number: 12,
    name: 'bad-chunk-size',
    cases: [
      {
        path: '',
        what: 'A chunk whose size is no number.',
        ending: 'protocol',
        answer: sends(`${CHUNKED}zz\r\n${PAGE}\r\n0\r\n\r\n`),
      },
      {
        path: '/spaces',
        what: 'White space after the size of a chunk.',
        ending: 'fetched',
        why: READ_AGAIN,
        answer: sends(`${CHUNKED}${PAGE.length.toString(16)}  \r\n${PAGE}\r\n0\r\n\r\n`),
      },
      {
        path: '/huge',
        what: 'A chunk of more bytes than fit into 64 bits.',
        ending: 'protocol',
        answer: sends(`${CHUNKED}fffffffffffffffff\r\n${PAGE}`),
      },
      {
        path: '/extension',
        what: 'A chunk extension without end.',
        ending: 'protocol',
        why: 'It is no part of the body, so no limit of bodies ends it.',
        answer: pours(`${CHUNKED}5;`, () => endless('a'.repeat(64 * 1024))),
      },
      {
        path: '/extensions',
        what: 'Chunks of one byte with extensions of a thousand.',
        ending: 'protocol',
        answer: pours(CHUNKED, () => endless(`1;${'a'.repeat(1_000)}\r\nx\r\n`.repeat(60))),
      },
    ],
  },
  {
    number: 13,
    name: 'length-and-chunks',
    cases: [
      {
        path: '',
        what: 'Content-Length and Transfer-Encoding together, which is how responses are smuggled.',
        ending: 'fetched',
        why: 'Browsers read the chunks. So does a second request, on a connection that carries nothing else, without credentials.',
        answer: sends(
          `${OK}${lengthOf(5)}Transfer-Encoding: chunked\r\n\r\n${PAGE.length.toString(16)}\r\n${PAGE}\r\n0\r\n\r\n`,
        ),
      },
    ],
  },
  {
    number: 14,
    name: 'two-lengths',
    cases: [
      {
        path: '',
        what: 'Two Content-Lengths that differ.',
        ending: 'protocol',
        answer: sends(`${OK}${lengthOf(PAGE.length)}${lengthOf(5)}\r\n${PAGE}`),
      },
      {
        path: '/equal',
        what: 'Two Content-Lengths that are equal.',
        ending: 'fetched',
        why: READ_AGAIN,
        answer: sends(`${OK}${lengthOf(PAGE.length)}${lengthOf(PAGE.length)}\r\n${PAGE}`),
      },
      {
        path: '/spaces',
        what: 'White space after the Content-Length.',
        ending: 'fetched',
        answer: sends(`${OK}Content-Length: ${PAGE.length} \r\n\r\n${PAGE}`),
      },
    ],
  },
  {
    number: 15,
    name: 'negative-length',
    cases: [
      {
        path: '',
        what: 'A Content-Length below zero.',
        ending: 'protocol',
        answer: sends(`${OK}Content-Length: -5\r\n\r\nhello`),
      },
      {
        path: '/huge',
        what: 'A Content-Length of 20 digits.',
        ending: 'protocol',
        or: ['too-large'],
        answer: sends(`${OK}Content-Length: 99999999999999999999\r\n\r\nhello`),
      },
    ],
  },
  {
    number: 34,
    name: 'no-content-with-body',
    cases: [
      {
        path: '',
        what: 'Status 204, which has no body, with one.',
        ending: 'fetched',
        why: 'It is a success without content; the bytes behind it are thrown away.',
        answer: sends(`HTTP/1.1 204 No Content\r\n${lengthOf(PAGE.length)}\r\n${PAGE}`),
      },
      {
        path: '/late',
        what: 'The same, but what looks like the next response comes a moment later.',
        ending: 'fetched',
        why: 'It must not pass for the answer to another request.',
        answer: (visit) => {
          const late = replyPage('Smuggled');
          visit.socket.write(`HTTP/1.1 204 No Content\r\n${lengthOf(late.length)}\r\n`);
          after(visit, 30, () => void visit.socket.write(late));
        },
      },
    ],
  },
];
