import { after, HTML, ownPage, pageOf, reply, replyPage, sends } from './answers.ts';
import type { Behaviour, HostileVisit } from './behaviour.ts';

/** Servers that answer properly, but not to everybody, not always, or not soon. */

/** Requests of one address that are answered in one second. */
const PER_SECOND = 4;

const throttles = (refusal: readonly string[]) =>
  sends((visit) =>
    visit.web.recent(visit, 1_000) > PER_SECOND
      ? reply('429 Too Many Requests', [HTML, ...refusal], 'slow down')
      : ownPage('Not too fast', visit),
  );

/** A ban ends when the address has asked for less for so long: who goes on asking stays out. */
const BAN_AFTER = 6;
const BAN_MS = 1_500;

function bans(visit: HostileVisit): Buffer {
  return visit.web.recent(visit, BAN_MS) > BAN_AFTER
    ? reply('403 Forbidden', [HTML], pageOf('Your address is blocked for a while'))
    : ownPage('Welcome', visit);
}

const CHALLENGE = `<!doctype html>
<html><head><title>Just a moment...</title></head><body>
<h1>Checking your browser before accessing the site</h1>
<div id="challenge-form" class="cf-browser-verification"></div>
<script>window._cf_chl_opt={cType:'managed'};</script>
</body></html>
`;

const REFUSAL = `<!doctype html>
<html><head><title>A shop</title></head><body>
<h1>Pardon our interruption</h1>
<p>We have detected unusual traffic from your network. Access to this page has been denied.</p>
</body></html>
`;

function slowly(visit: HostileVisit): void {
  const ms = Math.min(Number(new URLSearchParams(visit.query).get('ms')) || 300, 60_000);
  after(visit, ms, () => void visit.socket.write(ownPage('Slow, but there', visit)));
}

const FAILING = ['500 Internal Server Error', '502 Bad Gateway'];

function flaky(visit: HostileVisit): Buffer {
  const status = FAILING[visit.count - 1];
  return status === undefined ? ownPage('Well again', visit) : reply(status, [HTML], 'not now');
}

export const MANNERS: Behaviour[] = [
  {
    number: 41,
    name: 'throttled-with-retry-after',
    cases: [
      {
        path: '',
        what: `429 with Retry-After: 1 to every request of an address above ${PER_SECOND} a second.`,
        ending: 'fetched',
        times: 8,
        answer: throttles(['Retry-After: 1']),
      },
    ],
  },
  {
    number: 42,
    name: 'throttled',
    cases: [
      {
        path: '',
        what: 'The same without Retry-After.',
        ending: 'fetched',
        times: 8,
        answer: throttles([]),
      },
    ],
  },
  {
    number: 43,
    name: 'temporary-ban',
    cases: [
      {
        path: '',
        what: `403 to an address for a while, after ${BAN_AFTER} requests in ${BAN_MS / 1_000} seconds.`,
        ending: 'fetched',
        or: ['forbidden'],
        times: 10,
        answer: sends(bans),
      },
    ],
  },
  {
    number: 44,
    name: 'soft-block',
    cases: [
      {
        path: '',
        what: 'Status 200 with the page of a bot check instead of the one asked for.',
        ending: 'captcha',
        answer: sends(reply('200 OK', [HTML], CHALLENGE)),
      },
      {
        path: '/own-words',
        what: "Status 200 with a refusal in the site's own words.",
        ending: 'soft-block',
        or: ['blocked'],
        why: 'It lacks what the route requires, and says why.',
        answer: sends(reply('200 OK', [HTML], REFUSAL)),
      },
    ],
  },
  {
    number: 48,
    name: 'slow',
    cases: [
      {
        path: '',
        what: 'An answer after 300 ms, or as many as `?ms=` says.',
        ending: 'fetched',
        times: 4,
        answer: slowly,
      },
    ],
  },
  {
    number: 49,
    name: 'flaky',
    cases: [
      {
        path: '',
        what: '500 and 502 before each page is there at the third request.',
        ending: 'fetched',
        times: 3,
        answer: sends(flaky),
      },
    ],
  },
  {
    number: 50,
    name: 'changing-etag',
    cases: [
      {
        path: '',
        what: 'The same page with another ETag each time.',
        ending: 'fetched',
        again: 'unchanged',
        why: 'The bytes are the same, whatever the ETag says.',
        answer: sends(({ count }) => replyPage('The same', [`ETag: "${count}"`])),
      },
    ],
  },
];
