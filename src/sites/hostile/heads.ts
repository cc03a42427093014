import {
  drips,
  endless,
  HTML,
  OK,
  pageOf,
  pours,
  reply,
  replyPage,
  sends,
  sendsThenEnds,
} from './answers.ts';
import type { Behaviour } from './behaviour.ts';

/** Status lines and headers that are too many, too slow, or no HTTP. */

const HELLO = 'Content-Length: 5\r\n\r\nhello';

export const HEADS: Behaviour[] = [
  {
    number: 16,
    name: 'large-header',
    cases: [
      {
        path: '',
        what: 'One header of 64 KB.',
        ending: 'protocol',
        why: 'Real responses stay far below, and memory is for pages.',
        answer: sends(`${OK}X-Large: ${'a'.repeat(64 * 1024)}\r\n${HELLO}`),
      },
      {
        path: '/many',
        what: '200,000 headers of four bytes.',
        ending: 'protocol',
        answer: sends(() => `${OK}${'a:\r\n'.repeat(200_000)}${HELLO}`),
      },
    ],
  },
  {
    number: 17,
    name: 'many-cookies',
    cases: [
      {
        path: '',
        what: '500 Set-Cookie headers, 30 KB in all.',
        ending: 'fetched',
        answer: sends(() =>
          replyPage(
            'Many cookies',
            Array.from({ length: 500 }, (_, index) => `Set-Cookie: c${index}=${'v'.repeat(40)}; Path=/`),
          ),
        ),
      },
    ],
  },
  {
    number: 18,
    name: 'header-drip',
    cases: [
      {
        path: '',
        what: 'One small header after another, for ever.',
        ending: 'headers-timeout',
        answer: drips('HTTP/1.1 200 OK\r\n', 'X-Drip: 1\r\n', 25),
      },
    ],
  },
  {
    number: 21,
    name: 'interim-flood',
    cases: [
      {
        path: '',
        what: 'One 103 Early Hints after another, for ever.',
        ending: 'protocol',
        answer: drips('', 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n'.repeat(100), 10),
      },
      {
        path: '/continue',
        what: '100 Continue, which the request did not ask for.',
        ending: 'fetched',
        why: 'Browsers pass over it. So does a second request.',
        answer: sends(Buffer.concat([Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'), replyPage('Continued')])),
      },
      {
        path: '/upgrade',
        what: '101 Switching Protocols, which the request did not ask for.',
        ending: 'protocol',
        answer: sends('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
      },
    ],
  },
  {
    number: 22,
    name: 'http-0-9',
    cases: [
      {
        path: '',
        what: 'A page without status line and headers.',
        ending: 'protocol',
        answer: sendsThenEnds(pageOf('HTTP/0.9')),
      },
      {
        path: '/empty-lines',
        what: 'Empty lines before the status line, without end.',
        ending: 'protocol',
        answer: pours('', () => endless('\r\n'.repeat(32 * 1024))),
      },
    ],
  },
  {
    number: 23,
    name: 'line-feeds-only',
    cases: [
      {
        path: '',
        what: 'Header lines that end with LF instead of CRLF.',
        ending: 'fetched',
        why: 'Browsers read it. So does a second request on a connection of its own.',
        answer: sends(() => {
          const page = pageOf('Line feeds');
          return `HTTP/1.1 200 OK\n${HTML}\nContent-Length: ${page.length}\n\n${page}`;
        }),
      },
    ],
  },
  {
    number: 24,
    name: 'status-999',
    cases: [
      { path: '', what: 'Status 999.', ending: 'bad-status', answer: sends(reply('999 Odd', [HTML], 'odd')) },
    ],
  },
  {
    number: 25,
    name: 'status-099',
    cases: [
      { path: '', what: 'Status 099.', ending: 'protocol', answer: sends(`HTTP/1.1 099 Odd\r\n${HELLO}`) },
      {
        path: '/letters',
        what: 'A status of letters.',
        ending: 'protocol',
        answer: sends(`HTTP/1.1 two hundred\r\n${HELLO}`),
      },
      {
        path: '/reason',
        what: 'A reason behind the status that never ends.',
        ending: 'protocol',
        answer: pours('HTTP/1.1 200 ', () => endless('and so on '.repeat(6_000))),
      },
    ],
  },
  {
    number: 26,
    name: 'nul-in-header',
    cases: [
      {
        path: '',
        what: 'A NUL byte in a header.',
        ending: 'protocol',
        answer: sends(`${OK}X-Nul: a\0b\r\n${HELLO}`),
      },
    ],
  },
  {
    number: 27,
    name: 'space-before-colon',
    cases: [
      {
        path: '',
        what: 'A space between the name of a header and its colon.',
        ending: 'fetched',
        why: 'RFC 9112 forbids it, and browsers read it. So does a second request on a connection of its own.',
        answer: sends(replyPage('Space', ['X-Space : a'])),
      },
    ],
  },
  {
    number: 28,
    name: 'latin-1-header',
    cases: [
      {
        path: '',
        what: 'A header with bytes of latin-1.',
        ending: 'fetched',
        answer: sends(replyPage('Latin header', ['X-City: K\xf6ln'])),
      },
    ],
  },
];
