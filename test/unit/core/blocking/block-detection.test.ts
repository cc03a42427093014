import { describe, expect, test } from 'vitest';
import {
  type Answer,
  detectBlock,
  detectBlockedRedirect,
  detectBlockOfLacking,
  textOfHtml,
} from '../../../../src/core/blocking/block-detection.ts';
import { BLOCK_MARKERS, BLOCK_TITLES } from '../../../../src/core/blocking/block-markers.ts';
import { FOREIGN_TITLES, LOGIN_WALLS, REFUSALS } from '../../../../src/core/blocking/block-signals.ts';
import { TextFinder } from '../../../../src/core/blocking/text-finder.ts';
import { cpuNow } from '../../../support/cpu-time.ts';
import { corpusOf, ratesOf } from '../../../support/html/block-corpus.ts';
import { type BlockPage, CHALLENGES, corpusPages, ORDINARY } from '../../../support/html/block-pages.ts';

function answerOf({ status, headers, body }: BlockPage): Answer {
  return {
    status,
    rawHeaders: headers ?? ['Content-Type', 'text/html'],
    body: Buffer.from(body),
    isHtml: !body.startsWith('{'),
  };
}

describe('refusals', () => {
  test.each(CHALLENGES)('$name is seen, with evidence', (page) => {
    const block = detectBlock(answerOf(page));
    expect(block?.code).toBe(page.code);
    expect(block?.evidence).toMatch(page.by);
  });

  test('a redirect to a page of a defence is one', () => {
    expect(detectBlockedRedirect('https://www.google.com/sorry/index?continue=x')?.code).toBe('captcha');
    expect(detectBlockedRedirect('https://example.com/showcaptcha?cc=1')?.code).toBe('captcha');
    expect(detectBlockedRedirect('https://example.com/sorry')).toBeNull();
  });

  test('where required elements are missing, the words are enough', () => {
    const long = '<p>Some words about nothing at all. '.repeat(40);
    const page = { name: '', status: 200, body: `<title>Hello</title><p>Are you a robot?</p>${long}` };
    expect(detectBlock(answerOf(page))).toBeNull();
    expect(detectBlockOfLacking(answerOf(page))?.code).toBe('soft-block');
    const ordinary = { name: '', status: 200, body: `<title>Hello</title>${long}` };
    expect(detectBlockOfLacking(answerOf(ordinary))).toBeNull();
  });
});

describe('sentences that are found by a word', () => {
  test.each([
    'Ihr Zugriff auf diese Seite wurde aus Sicherheitsgründen gesperrt.',
    'IHR ZUGRIFF AUF DIESE SEITE WURDE VORERST GESPERRT.',
    'Ihr Zugriff auf diese Seite <b>wur</b>de aus Gründen gesperrt.',
    'Ihr Zugriff auf diese Seite wu<!-- a > b -->rde aus Gründen gesperrt.',
    'Ihr Zugriff auf diese Seite w<noscript>x</noscript>urde aus Gründen gesperrt.',
    'Ihr Zugriff auf diese Seite <i><b>w</b>u</i><!-- a --></u>rd</u>e aus Gründen gesperrt.',
    `Ihr Zugriff auf diese Seite wur</b ${'x'.repeat(500)}>de aus Gründen gesperrt.`,
    'Confirme que você não é um robô.',
    'CONFIRME QUE VOCÊ NÃO É UM ROBÔ.',
    'Confirme que você não é um <b>rob</b>ô.',
  ])('%s', (text) => {
    const page = { name: '', status: 403, body: `<html><body><p>${text}</p></body></html>` };
    expect(detectBlock(answerOf(page))?.code).toBe('blocked');
  });

  test('all of them have one, which is in the sentence', () => {
    for (const { part, word, pattern } of [...REFUSALS, ...LOGIN_WALLS])
      if (Buffer.byteLength(part) < 7 || word !== undefined) expect(pattern.source).toContain(word);
  });
});

describe('ordinary pages', () => {
  test.each([...ORDINARY, ...corpusPages()])('$name is no refusal', (page) => {
    expect(detectBlock(answerOf(page))).toBeNull();
  });

  test.each([
    'A CAPTCHA is a test to confirm that you are not a robot.',
    'CAPTCHAs are small puzzles. Visitors confirm that they are human; a page says: confirm that you are not a robot.',
    'Ein Captcha ist eine Aufgabe: Bestätigen Sie, dass Sie kein Roboter sind.',
    'Un captcha est un test : veuillez confirmer que vous n’êtes pas un robot.',
  ])('nor what says what a CAPTCHA is: %s', (words) => {
    const page = (body: string) =>
      detectBlock(answerOf({ name: '', status: 200, body: `<title>Words</title><p>${body}</p>` }));
    expect(page(words)).toBeNull();
    expect(page(words.replace(/^.*?captchas? \p{L}+ /iu, 'The captcha is required. '))).not.toBeNull();
  });

  test('an empty place for an application is a page where there is a script, and nothing without one', () => {
    const page = (script: string) =>
      detectBlock(answerOf({ name: '', status: 200, body: `<title></title><div id="root"></div>${script}` }));
    expect(page('<script>start()</script>')).toBeNull();
    expect(page('')?.code).toBe('soft-block');
  });

  test('nor is anything that is not HTML, with a status of success', () => {
    const page = answerOf({ name: '', status: 200, body: CHALLENGES[0]!.body });
    expect(detectBlock({ ...page, isHtml: false })).toBeNull();
  });
});

describe('the corpus', () => {
  test.each(['tuning', 'frozen'] as const)(
    'block pages of the %s half are told from ordinary ones',
    (half) => {
      const { precision, recall, blocks, ordinary } = ratesOf(half, (answer) => detectBlock(answer) !== null);
      expect(blocks + ordinary).toBeGreaterThan(120);
      expect(precision).toBeGreaterThan(0.95);
      expect(recall).toBeGreaterThan(0.95);
    },
  );

  test('a job may look only for known defences, for nothing, or for more', () => {
    const rateOf = (detect: 'known' | 'off') =>
      ratesOf('tuning', (answer) => detectBlock(answer, { detect, add: [] }) !== null).recall;
    expect(rateOf('known')).toBe(0);
    expect(rateOf('off')).toBe(0);
    const known = answerOf(CHALLENGES[0]!);
    expect(detectBlock(known, { detect: 'known', add: [] })?.code).toBe('captcha');
    expect(detectBlock(known, { detect: 'off', add: [] })).toBeNull();
    const [ordinary] = corpusOf('tuning').filter(({ page }) => page.name === 'note en');
    const own = detectBlock(ordinary!.answer, { detect: 'all', add: ['Boats Stay'] });
    expect(own).toEqual({ code: 'soft-block', evidence: 'the page has "Boats Stay", as the job says' });
  });
});

describe('the first look', () => {
  test('everything it knows is in lower case, as it is compared', () => {
    for (const text of [...BLOCK_MARKERS.flatMap(({ texts }) => texts), ...BLOCK_TITLES, ...FOREIGN_TITLES])
      expect(text).toBe(text.toLowerCase());
  });

  test('takes linear time on a page made to be slow', () => {
    const soups = ['<script', '<!--', '<', '<textarea ', '<svg>', 'your ', 'you have been '];
    for (const soup of soups) {
      const body = Buffer.from(`<title>access denied</title>captcha ${soup.repeat(400_000)}`);
      const startedAt = cpuNow();
      for (const status of [200, 403]) detectBlock({ status, rawHeaders: [], body, isHtml: true });
      detectBlock({ status: 200, rawHeaders: [], body: body.subarray(0, 8_000), isHtml: true });
      detectBlockOfLacking({ status: 200, rawHeaders: [], body, isHtml: true });
      expect(cpuNow() - startedAt, soup).toBeLessThan(500);
    }
  });
});

test('the words of a page are those that are read', () => {
  const page = '<p>one<b>two</b> 1 < 2<script>if (a<b) x()</script><style>p{}</style><!-- no --> end</p >';
  expect(textOfHtml(page)).toBe('one two 1 < 2 end');
  expect(textOfHtml('<script>never closed')).toBe('');
});

describe('many texts in one pass', () => {
  test('are found wherever they stand, in any case, and nothing else is', () => {
    const finder = new TextFinder(['captcha', 'px-captcha', 'var dd={', 'not a robot', 'aaaaaaa']);
    const find = (page: string, end = page.length) => [...finder.find(Buffer.from(page), end)].sort();
    expect(find('')).toEqual([]);
    for (let before = 0; before < 9; before++)
      expect(find(`${'x'.repeat(before)}VAR dd={`)).toEqual(['var dd={']);
    expect(find('xx PX-Captcha')).toEqual(['captcha', 'px-captcha']);
    expect(find('captch captcha')).toEqual(['captcha']);
    expect(find('captcha', 6)).toEqual([]);
    expect(find('I am NOT A ROBOT')).toEqual(['not a robot']);
    expect(find('aaa aaaaaaaa')).toEqual(['aaaaaaa']);
    expect(() => new TextFinder(['robot'])).toThrow('too short');
  });

  test('as a search for each would find them', () => {
    const texts = ['abababa', 'babbabb', 'aabbab b', 'bbbbbbb', 'a bbbabb'];
    const finder = new TextFinder(texts);
    let seed = 7;
    const next = () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return seed / 2 ** 32;
    };
    for (let round = 0; round < 500; round++) {
      const page = Array.from({ length: 600 }, () => 'abAB '[Math.floor(next() ** 2 * 5)]).join('');
      const wanted = texts.filter((text) => page.toLowerCase().includes(text));
      expect([...finder.find(Buffer.from(page), page.length)].sort(), page).toEqual(wanted.sort());
    }
  });
});
