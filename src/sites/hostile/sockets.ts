import { randomBytes } from 'node:crypto';
import { drips, endless, HTML, OK, pours, sends, sendsThenEnds } from './answers.ts';
import type { Behaviour, SecurePort } from './behaviour.ts';

/** Servers that are slow, silent, endless, or speak another language. */

/** Never the beginning of HTTP. */
function noise(): Buffer {
  const bytes = randomBytes(4_096);
  bytes[0] = 0x80;
  return bytes;
}

const toPort = (port: SecurePort) =>
  sends(
    ({ web }) =>
      `HTTP/1.1 302 Found\r\n${HTML}\r\nLocation: ${web.secure[port]}/\r\nContent-Length: 0\r\n\r\n`,
  );

export const SOCKETS: Behaviour[] = [
  {
    number: 19,
    name: 'body-drip',
    cases: [
      {
        path: '',
        what: 'A byte of the body now and then, never long enough apart to be silence.',
        ending: 'task-timeout',
        answer: drips(`${OK}Content-Length: 100000\r\n\r\n`, 'x', 25),
      },
      {
        path: '/stalled',
        what: 'Half a body, then silence.',
        ending: 'body-timeout',
        answer: sends(`${OK}Content-Length: 100000\r\n\r\n<h1>half</h1>`),
      },
    ],
  },
  {
    number: 20,
    name: 'infinite-body',
    cases: [
      {
        path: '',
        what: 'A body without end, as fast as the network.',
        ending: 'too-large',
        answer: pours(`${OK}\r\n`, () => endless('<p>and so on</p>\n'.repeat(4_000))),
      },
    ],
  },
  {
    number: 29,
    name: 'silent',
    cases: [
      {
        path: '',
        what: 'The request is read, and never answered.',
        ending: 'headers-timeout',
        answer: () => {},
      },
    ],
  },
  {
    number: 30,
    name: 'immediate-reset',
    cases: [
      {
        path: '',
        what: 'A reset instead of an answer.',
        ending: 'reset',
        answer: ({ socket }) => void socket.resetAndDestroy(),
      },
      {
        path: '/fin',
        what: 'The connection closes instead of an answer.',
        ending: 'reset',
        answer: ({ socket }) => void socket.end(),
      },
    ],
  },
  {
    number: 35,
    name: 'tls-alert',
    cases: [
      {
        path: '',
        what: 'A TLS alert on a port without TLS.',
        ending: 'protocol',
        answer: sendsThenEnds(Buffer.from([0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x28])),
      },
    ],
  },
  {
    number: 36,
    name: 'random-bytes',
    cases: [{ path: '', what: 'Noise.', ending: 'protocol', answer: sends(noise) }],
  },
  {
    number: 37,
    name: 'bad-certificate',
    cases: [
      {
        path: '/expired',
        what: 'Leads to a port whose certificate has expired.',
        ending: 'tls',
        answer: toPort('expired'),
      },
      {
        path: '/self-signed',
        what: 'Leads to a port whose certificate is signed by itself.',
        ending: 'tls',
        answer: toPort('self-signed'),
      },
      {
        path: '/wrong-host',
        what: 'Leads to a port whose certificate is for another host.',
        ending: 'tls',
        answer: toPort('wrong-host'),
      },
    ],
  },
  {
    number: 38,
    name: 'tls-stall',
    cases: [
      {
        path: '',
        what: 'Leads to a port where the TLS handshake never goes on.',
        ending: 'connect-timeout',
        answer: toPort('stalled'),
      },
    ],
  },
];
