import { randomBytes } from 'node:crypto';
import { reply, sends } from './answers.ts';
import type { Behaviour, HostileVisit } from './behaviour.ts';

/** Redirects that lead nowhere, or where a crawler must not go. */

type Target = string | null | ((visit: HostileVisit) => string);

const leads = (to: Target) =>
  sends((visit) => {
    const location = typeof to === 'function' ? to(visit) : to;
    return reply('302 Found', location === null ? [] : [`Location: ${location}`]);
  });

const stepOf = ({ rest }: HostileVisit) => Number(rest.slice(1)) || 0;

export const REDIRECTS: Behaviour[] = [
  {
    number: 31,
    name: 'redirects',
    cases: [
      {
        path: '/self',
        what: 'A redirect to itself.',
        ending: 'bad-redirect',
        answer: leads(({ base }) => base),
      },
      {
        path: '/circle',
        what: 'Two pages that redirect to each other.',
        ending: 'redirect-limit',
        answer: leads((visit) => `${visit.base}/${1 - Math.min(stepOf(visit), 1)}`),
      },
      {
        path: '/chain',
        what: 'A chain of redirects without end.',
        ending: 'redirect-limit',
        answer: leads((visit) => `${visit.base}/${stepOf(visit) + 1}`),
      },
      {
        path: '/farm',
        what: 'Each redirect leads to a new address, of no pattern.',
        ending: 'redirect-limit',
        answer: leads(({ base }) => `${base}/${randomBytes(12).toString('hex')}`),
      },
    ],
  },
  {
    number: 32,
    name: 'redirect-to-other-scheme',
    cases: [
      {
        path: '/file',
        what: 'A redirect to a file of the machine.',
        ending: 'bad-redirect',
        answer: leads('file:///etc/passwd'),
      },
      {
        path: '/data',
        what: 'A redirect to a data: URL.',
        ending: 'bad-redirect',
        answer: leads('data:text/html,<h1>data</h1>'),
      },
      {
        path: '/script',
        what: 'A redirect to a javascript: URL.',
        ending: 'bad-redirect',
        answer: leads('javascript:alert(1)'),
      },
    ],
  },
  {
    number: 33,
    name: 'bad-location',
    cases: [
      { path: '/none', what: 'A redirect without Location.', ending: 'bad-redirect', answer: leads(null) },
      {
        path: '/empty',
        what: 'A redirect with an empty Location.',
        ending: 'bad-redirect',
        answer: leads(''),
      },
      {
        path: '/nonsense',
        what: 'A Location that is no URL.',
        ending: 'bad-redirect',
        answer: leads('http://[not a url]:port/'),
      },
      {
        path: '/long',
        what: 'A Location of 40 KB.',
        ending: 'bad-redirect',
        answer: leads(({ base }) => `${base}/${'a'.repeat(40 * 1024)}`),
      },
    ],
  },
];
