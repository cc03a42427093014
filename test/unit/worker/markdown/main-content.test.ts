import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mainContent } from '../../../../src/worker/markdown/markdown.ts';
import { Page } from '../../../../src/worker/page/page.ts';
import { contentPages, meanOf, rateText, textOfMarkdown } from '../../../support/html/content-corpus.ts';

const PAGES = join(import.meta.dirname, '../../../support/pages');

function contentOf(html: string | Buffer, type = 'text/html') {
  const page = new Page({
    url: 'https://site.example/a/b/page.html',
    status: 200,
    contentType: type,
    contentTypeHeader: `${type}; charset=utf-8`,
    headers: [],
    body: Buffer.from(html),
    route: null,
    meta: null,
  });
  return mainContent(page);
}

interface Expected {
  title: string;
  /** Pieces of Markdown, in this order. */
  has: string[];
  hasNot: string[];
}

const EXPECTED: Record<string, Expected> = {
  'article.html': {
    title: 'Harbour bridge reopens after two years',
    has: [
      '# Harbour bridge reopens after two years\n',
      '*1911 swing bridge*',
      '![The bridge at dawn](https://site.example/photos/bridge-1200.jpg)',
      'with a ribbon, a brass band and a queue',
      'It feels **lighter** than before',
      '\n## Why it took so long\n',
      '[only the damaged pier](https://site.example/a/archive/2022/pier.html)',
      '\n> We could have patched it. We would have been back in five years.\n>\n> — Ines Calder',
      'an estimate of £14m\\*.',
      '\n- March 2022: a barge strikes the eastern pier\n- June 2023',
      'until August.',
    ],
    hasNot: [
      'cookies',
      'Mira Holt',
      '13 May',
      'Subscribe',
      'Advertisement',
      'Share',
      'Related stories',
      'Most read',
      'rights reserved',
      'Home',
    ],
  },
  'blog.html': {
    title: 'How I stopped worrying about time zones',
    has: [
      '# How I stopped worrying about time zones',
      '**store instants, show local time, never add hours**',
      '\n```js\nconst next = new Date(last);\nnext.setHours(next.getHours() + 24); // not a day!\nconsole.log(`next: ',
      '`);\n```\n',
      '`Temporal.ZonedDateTime` does – see [the proposal](https://tc39.es/proposal-temporal/docs/).  \nIt took me',
      '![A clock without hands \\[drawing\\]](http://img.example/clock.jpg?w=600)',
      '2019\\. was the year',
    ],
    hasNot: [
      'cookies',
      'Archive',
      'Share this',
      'Older post',
      'leap seconds',
      'Leave a Reply',
      'Recent Posts',
      'About me',
      'Proudly',
    ],
  },
  'docs.html': {
    title: 'Retries',
    has: [
      '# Retries\n',
      'is *transient*',
      '`RetryPolicy`',
      '\n## The policy\n',
      '```python\nimport pail\n\nwith pail.open_pail("s3://bucket", retry=pail.RetryPolicy(attempts=6)) as p:\n    for key in p:\n        print(key < \'m\')  # a < b\n```',
      'A policy is shared by all threads',
      '| Field | Default | Meaning |\n| --- | --- | --- |\n| `attempts` | 4 |',
      'tried again<br>besides lost connections |',
      '[which errors are transient](https://site.example/docs/en/latest/errors.html#transient)',
      '(https://en.wikipedia.org/wiki/Exponential_backoff_(computing))',
      '3. First the connection is closed.\n\n   ```sh\n   pail close --all\n   ```\n4. Then a timer is set:\n   - at once for the first retry\n     - not even then with `lazy`\n   - later',
      'pail.pause(n)\n: The pause before attempt *n*',
    ],
    hasNot: ['¶', 'Installation', 'On this page', 'Show source', 'Copyright'],
  },
  'forum.html': {
    title: 'Sourdough too sour?',
    has: [
      '# Sourdough too sour?',
      '[rye_not](https://site.example/u/rye)',
      'My starter is two weeks old',
      '> I feed it 1:1:1 once a day\n',
      'Try **1:5:5**, or feed twice.',
      'For the record: 20 g starter',
    ],
    hasNot: ['Members', 'Next ›', 'Report', 'Post reply', 'Powered'],
  },
  'japanese.html': {
    title: '雨の日の灯台を訪ねて',
    has: [
      '# 雨の日の灯台を訪ねて',
      '梅雨の雨に濡れて',
      '\n## 行き方\n',
      '[十二番のバス](https://site.example/bus/12)',
      '| 平日 | 9時〜16時 |',
    ],
    hasNot: ['つゆ', 'トップ', '関連記事', '人気の記事', '無断転載'],
  },
  'listing.html': {
    title: 'Lighting',
    has: [
      '# Lighting',
      '[Alder Oak Desk Lamp](https://site.example/p/1)',
      '€89.00',
      '(https://site.example/p/3)',
    ],
    hasNot: ['Cart', 'About us'],
  },
  'old.html': {
    title: 'Keeping bees in a small garden',
    has: [
      '## Keeping bees in a small garden',
      'A garden of 200 m^2 is enough',
      '\n\nThe hive should face **south-east**',
      '- one hive with two boxes\n- a smoker, a veil and gloves\n- somebody',
      'do not panic & do not use a hose',
      '\n---\n',
      '*Last changed: 12 March 1999*',
    ],
    hasNot: ['Guestbook', 'Roses', 'counter.gif', '|'],
  },
  'product.html': {
    title: 'Alder Oak Desk Lamp',
    has: [
      '![Alder lamp, lit](https://site.example/img/lamp-1.jpg)',
      '# Alder Oak Desk Lamp',
      '~~€99.00~~ **€89.00**',
      'turned from a single piece of European oak',
      '- Solid oak, oiled\n- E14 socket, up to 25 W',
      '## Specifications',
      '| Material | Oak \\| brass |',
    ],
    hasNot: [
      'Free shipping',
      'Search',
      'Desk lamps',
      'Home',
      'Quantity',
      'Add to cart',
      'You may also like',
      'Nothing is for sale',
      '10 % off',
    ],
  },
  'recipe.html': {
    title: 'Lentil soup with lemon',
    has: [
      '# Lentil soup with lemon',
      'My grandmother made this',
      '- [ ] 250 g red lentils',
      '- [x] 1 lemon',
      '1. Chop the onion',
      '2. Add lentils and water. Cook for 25 minutes.\n\n   *Do not salt yet:* salt keeps',
      '3. Salt, blend half',
      '| Energy | Protein | Fat |\n| --- | --- | --- |\n| 310 kcal | 18 g | 6 g |',
    ],
    hasNot: ['Print', 'Jump to', 'whole family', 'since 2011', 'Breads'],
  },
  'tables.html': {
    title: '2023 season',
    has: [
      'Nine rounds were played',
      '| 1 | [Gulls](https://site.example/t/gulls) | 9 | 7 | 21:8 | **22** |',
      '| 1 | Gulls | Auks | 3:0 |\n|  | Terns | Skuas | 1:1 |\n| 2 | postponed (fog) |  | – |',
      '|  |  |\n| --- | --- |\n| Gulls | 1,204 |',
    ],
    hasNot: ['2022', 'Imprint'],
  },
};

describe('main content', () => {
  test('every page of the collection is looked at', () => {
    expect(readdirSync(PAGES).sort()).toEqual(Object.keys(EXPECTED).sort());
  });

  test.each(Object.entries(EXPECTED))('%s: the content and nothing else', (name, { title, has, hasNot }) => {
    const content = contentOf(readFileSync(join(PAGES, name)));
    expect(content.title).toBe(title);
    let at = 0;
    for (const piece of has) {
      const found = content.markdown.indexOf(piece, at);
      expect(found, `${piece}\n--- in order in ---\n${content.markdown}`).toBeGreaterThanOrEqual(0);
      at = found;
    }
    for (const piece of hasNot) expect(content.markdown).not.toContain(piece);
  });

  test('a page whose names say that all of it is beside is taken whole', () => {
    const html =
      '<body class=sidebar><div class=sidebar><p>All that there is to say stands here, in a box of a strange name.</div>';
    expect(contentOf(html).markdown).toBe(
      'All that there is to say stands here, in a box of a strange name.',
    );
  });

  test('a heading goes with the box of links that it is above, and stays with text', () => {
    const box = '<div class=related><a href=/1>One</a></div>';
    const text = '<p>Enough to say about the thing itself, in a sentence or two that end here.</p>';
    expect(contentOf(`<main>${text}<h2>Related</h2>\n${box}</main>`).markdown).not.toContain('Related');
    expect(contentOf(`<main>${text}<h2>Kept</h2>${box}${text}</main>`).markdown).toContain('## Kept');
    expect(contentOf(`<main>${text}<h2>Kept</h2>words${box}</main>`).markdown).toContain('## Kept');
  });

  test('a page that is a list of links is that list, whatever is said beside it', () => {
    const help =
      '<div id=help><h2>Keys</h2><p>Press the arrow keys to go from one chapter to the next, or back.</div>';
    const list = '<ul><li><a href=1.html>Targets of the build</a><li><a href=2.html>Workspaces</a></ul>';
    expect(contentOf(`${help}<main><h1><a href=#r>Reference</a></h1>${list}</main>`).markdown).toBe(
      '# Reference\n\n- [Targets of the build](https://site.example/a/b/1.html)\n- [Workspaces](https://site.example/a/b/2.html)',
    );
    expect(contentOf(`${help}<main id=app></main>`).markdown).toContain('Press the arrow keys');
  });

  test('a page without anything is nothing, and text is what it is', () => {
    expect(contentOf('')).toEqual({ title: null, markdown: '' });
    expect(contentOf('<script>x</script>')).toEqual({ title: null, markdown: '' });
    expect(contentOf('just text')).toEqual({ title: null, markdown: 'just text' });
    expect(contentOf('# a\n<b>', 'text/markdown')).toEqual({ title: null, markdown: '# a\n<b>' });
    expect(contentOf('{"a":1}', 'application/json')).toEqual({ title: null, markdown: '' });
  });
});

describe('one name, one label or one share is no proof', () => {
  const text = (about: string, count = 6) =>
    Array.from(
      { length: count },
      (_, number) =>
        `<p>Sentence ${number} about the ${about}, which goes on for a while, as sentences do, and ends here.</p>`,
    ).join('');
  const links =
    '<ul><li><a href=/1>Another page of this site</a><li><a href=/2>And one more of them</a></ul>';

  test.each([
    'article-body pagination-first',
    'paywall',
    'CtxtMenu_Container',
    'social promo related',
    'comment sidebar',
  ])('a body called %s', (name) => {
    const html = `<h1>Bees</h1><div class=intro>${text('hive', 3)}</div><div class="${name}">${text('meadow')}</div>`;
    const { markdown } = contentOf(`<title>Bees</title><body>${links}${html}`);
    expect(markdown).toContain('about the hive');
    expect(markdown.match(/about the meadow/g)).toHaveLength(6);
    expect(markdown).not.toContain('Another page');
  });

  test('headings that link back to the contents, and formulas with a menu of their own', () => {
    const body = `<div role=main><h2><a class=toc-backref href=#c>Swarms</a></h2>${text('hive', 3)}
      <p>Let <mjx-container class="MathJax CtxtMenu_Attached_0">x = y</mjx-container> be given.</p></div>`;
    const { markdown } = contentOf(body);
    expect(markdown).toContain('## Swarms');
    expect(markdown).toContain('Let x = y be given');
  });

  test('readers say more than the article, and it is still the article', () => {
    const comment = `<li class=comment><b>Tom</b>${text('cost', 2)}</li>`;
    const html = `<h1>Bees</h1><div>${text('hive')}</div><div id=comments><h2>9 comments</h2><ol>${comment.repeat(9)}</ol></div>`;
    const { markdown } = contentOf(html);
    expect(markdown).toContain('about the hive');
    expect(markdown).not.toContain('about the cost');
    const thread = contentOf(`<h1>Bees?</h1><div class=comments>${comment.repeat(9)}</div>`);
    expect(thread.markdown.match(/about the cost/g)).toHaveLength(18);
  });

  test('boxes without a name are known by how they begin', () => {
    const box = (label: string) =>
      `<div><h3>${label}</h3><p>Words that every page of the site has, in a sentence.</p></div>`;
    const labels = [
      'About the author',
      'Sign up to our letters',
      'Leave a reply',
      'Table of contents',
      'We value your privacy',
    ];
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive')}${labels.map(box).join('')}${box('Why bees swarm')}</article>`,
    );
    for (const label of labels) expect(markdown).not.toContain(label);
    expect(markdown).toContain('Why bees swarm');
  });

  test('who wrote it and when is said above the text, and a date in a sentence is part of it', () => {
    const line =
      '<address><a href=/ann>Ann Lee</a> Transport editor</address><div><time>12 May 2026</time> by Ann</div>';
    const first =
      '<p>On <time>12 May</time> the bees left the hive, all of them, and came back a day later, as bees do.</p>';
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${line}${first}${text('hive')}<address>Hive Road 1</address></article>`,
    );
    expect(markdown).not.toContain('Ann');
    expect(markdown).toContain('On 12 May the bees');
    expect(markdown).toContain('Hive Road 1');
  });

  test('a list of links below a line of text is content, cards of other pages are not', () => {
    const card = (number: number) =>
      `<div><h3><a href=/${number}>A story about number ${number}</a></h3><p>What it says, in a few words.</p></div>`;
    const cards = `<div>${[1, 2, 3, 4].map(card).join('')}</div>`;
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive')}<p>Read on here:</p>${links}${cards}</article>`,
    );
    expect(markdown).toContain('Another page of this site');
    expect(markdown).not.toContain('A story about');
    expect(contentOf(`<h1>Stories</h1>${cards}`).markdown).toContain('A story about number 4');
  });

  test.each([
    [
      'words between two paragraphs',
      `${text('meadow', 3)}<a href=#rest>Continue reading</a>${text('meadow', 30)}`,
    ],
    ['words above the first paragraph', `<div>Share this</div>${text('meadow', 33)}`],
  ])('a body is no box of what its label says: %s', (_where, body) => {
    const readers = `<div><h2>Readers' Comments (20)</h2>${`<div>${text('cost', 2)}</div>`.repeat(20)}</div>`;
    const { markdown } = contentOf(`<h1>Bees</h1><div class=story>${body}</div>${readers}`);
    expect(markdown.match(/about the meadow/g)).toHaveLength(33);
    expect(markdown).not.toContain('about the cost');
  });

  test('a place to jump to that is never closed makes nothing a link', () => {
    const { markdown } = contentOf(
      `<body><a name=top><div>${links}</div><div><h1>Bees</h1>${text('hive')}</div><div>${links}</div>`,
    );
    expect(markdown).toContain('about the hive');
    expect(markdown).not.toContain('Another page');
  });

  test.each(['article_footer_comments', 'page-comments-content', 'main-comment-section', 'articleComments'])(
    'readers in a box called %s',
    (name) => {
      const readers = `<div>${text('cost', 3)}</div>`.repeat(9);
      const { markdown } = contentOf(
        `<div><h1>Bees</h1><div>${text('hive')}</div><div class="${name}">${readers}</div></div>`,
      );
      expect(markdown).toContain('about the hive');
      expect(markdown).not.toContain('about the cost');
    },
  );

  test('what style sheets hide on all screens, and what is laid over the page', () => {
    const box = (name: string, about: string) => `<div class="${name}">${text(about, 2)}</div>`;
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive', 5)}${box('note hidden', 'badge')}${box('hidden md:block', 'meadow')}</article>`,
    );
    expect(markdown).not.toContain('about the badge');
    expect(markdown).toContain('about the meadow');
    const login = box('auth-modal', 'password');
    expect(contentOf(`<h1>Bees</h1>${text('hive', 3)}${login}`).markdown).not.toContain('about the password');
  });

  test('other pages with the name of their section above, and the author below', () => {
    const card = (number: number) =>
      `<div><b>Opinion</b><h4><a href=/${number}>A story about number ${number}</a></h4><p>What it says, in a few words that are none of ours.</p></div>`;
    const author = `<div class=author-info><p>Ann Lee writes about bees and meadows, keeps nine hives, and lives near the sea with two cats.</p></div>`;
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive')}<div>${[1, 2, 3, 4].map(card).join('')}</div>${author}</article>`,
    );
    expect(markdown).toContain('about the hive');
    expect(markdown).not.toContain('A story about');
    expect(markdown).not.toContain('Ann Lee');
  });

  test('the section, the date and buttons above the title, and a first sentence there', () => {
    const above =
      '<h2><a href=/nature>Nature</a></h2><span class=story-date><span class=date>12 May 2026</span> Last updated at 04:27</span><ul><li><a href=/t>Tweet</a></ul>';
    const { markdown } = contentOf(
      `<title>Why bees swarm</title><div class=story>${above}<h1>Why bees swarm</h1>${text('hive')}</div>`,
    );
    expect(markdown).toMatch(/^# Why bees swarm\n\nSentence 0/);
    const first = `<title>Why bees swarm</title><div class=story>${text('queen', 1)}<h1>Why bees swarm</h1>${text('hive')}</div>`;
    expect(contentOf(first).markdown).toContain('about the queen');
  });

  test('who wrote it, in words without a box, and above a text whose lines end with br', () => {
    const author = '<span class=byline><span>By Ann Lee</span> <span>Nature reporter</span></span>';
    const { markdown } = contentOf(
      `<div class=story><h1>Bees</h1>${author}<p>Asked by <span class=author>Tom Hill</span>, who keeps bees near the sea, all of them said that they will be back in May.</p>${text('hive')}</div>`,
    );
    expect(markdown).not.toContain('Ann Lee');
    expect(markdown).toContain('Asked by Tom Hill');
    const lines = 'The bees left the hive, all of them, and came back a day later.<br><br>'.repeat(9);
    const html = `<article><header><h1>Bees</h1><p>by Ann Lee on May 15, 2026 at 3:45 pm</p></header><div>${lines}</div></article>`;
    expect(contentOf(html).markdown).toMatch(/^# Bees\n\nThe bees left/);
  });

  test('lines that lead to other pages after a word in capitals, and a place in capitals', () => {
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive', 3)}<p><b>STORY:</b> <a href=/1>How the meadow was won back from the road</a></p>
      <p>LONDON: The bees are back, says <a href=/2>the report</a>, and they stay until the first cold night of autumn.</p>${text('hive', 3)}</article>`,
    );
    expect(markdown).not.toContain('meadow was won back');
    expect(markdown).toContain('LONDON: The bees are back');
  });

  test('how to reach and follow those who wrote it', () => {
    const lines = [
      'Follow Ann Lee on Twitter: @annlee.',
      'To contact the reporter on this story: Ann Lee in London at ann@site.example, or at the desk for nature.',
      'Contact Ann Lee at ann@site.example and follow the desk for more.',
    ];
    const story =
      'Follow the road on the left to the hive, then ask for the keeper at the gate of the meadow.';
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive')}<p>${story}</p>${lines.map((line) => `<p><i>${line}</i></p>`).join('')}</article>`,
    );
    expect(markdown).toContain(story);
    expect(markdown).not.toContain('Ann Lee');
  });

  test('a box within the text that begins with a link past it is part of the text', () => {
    const box = `<div class=feature><a class=hidden href=#rest>Continue reading the main story</a><h2>Analysis</h2>${text('queen', 3)}</div>`;
    const { markdown } = contentOf(
      `<div><h1>Bees</h1>${text('hive', 3)}${box}<div id=rest>${text('hive', 3)}</div></div>`,
    );
    expect(markdown.match(/about the queen/g)).toHaveLength(3);
    expect(markdown).not.toContain('Continue reading');
  });

  test('a main element that ends before the text', () => {
    const early = `<main><h1>Bees</h1><p>Nine hives by the sea</p></main><div class=text>${text('hive', 12)}</div>`;
    expect(contentOf(`<body><div>${early}</div>${links}`).markdown.match(/about the hive/g)).toHaveLength(12);
    const readers = `<div class=comments>${text('cost', 30)}</div>`;
    expect(contentOf(`<main><h1>Bees</h1>${text('hive', 3)}</main>${readers}`).markdown).not.toContain(
      'cost',
    );
  });

  test('a heading that says the title in other words, and a column above it', () => {
    const column = `<div>${text('shop', 1)}<p>Buy now</p></div>`;
    const { markdown } = contentOf(
      `<title>Nine hives are now back by the cold sea - Site</title><div><div><h1>Bee Health Center</h1></div>${column}
      <div><h2>Nine hives are back by the sea</h2>${text('hive')}</div></div>`,
    );
    expect(markdown).toMatch(/^## Nine hives are back by the sea\n\nSentence 0 about the hive/);
  });

  test('the name of the section above the title, which only ends the title of the page', () => {
    const { markdown } = contentOf(
      `<title>A judge frees all of the bees : The Meadow : Site</title>
      <article><h2>The Meadow</h2><h3><a href=/law>Law</a></h3><h1>Bees go home from court</h1>${text('hive')}</article>`,
    );
    expect(markdown).toMatch(/^# Bees go home from court\n\nSentence 0/);
  });

  test('pictures to leaf through, and pictures that tell the story', () => {
    const slide = (number: number) =>
      `<div class=s><img src=/${number}.jpg><div>The keeper on day ${number} (Photo: Ann Lee)</div></div>`;
    const figure = (number: number) =>
      `<figure><img src=/f${number}.jpg><figcaption>The hive on day ${number}</figcaption></figure>`;
    const four = (one: (number: number) => string) => `<div>${[1, 2, 3, 4].map(one).join('')}</div>`;
    const { markdown } = contentOf(
      `<article><h1>Bees</h1>${text('hive')}${four(slide)}${text('meadow', 2)}${four(figure)}</article>`,
    );
    expect(markdown).not.toContain('The keeper on day');
    expect(markdown).toContain('The hive on day 4');
    expect(markdown).toContain('about the meadow');
    expect(contentOf(`<h1>Bees</h1>${four(slide)}`).markdown).toContain('The keeper on day 4');
  });

  test('parts of a text in boxes without names, one long and others short', () => {
    const part = (count: number) =>
      `<div><div>${'<p>Bees fly low over the meadow in the morning, when the grass is wet and the wind is down.</p>'.repeat(count)}</div></div>`;
    const { markdown } = contentOf(
      `<title>Bees</title><article><header><h1>Bees</h1></header><div class=entry>${part(20)}` +
        '<div><div><p>In the evening they come back by another way, along the stream and the old wall.</div></div>' +
        '<div><div><a href=/1>More about wasps and what they eat in the cold season, with pictures and a map</a></div></div></div></article>',
    );
    expect(markdown).toContain('along the stream and the old wall');
    expect(markdown).not.toContain('with pictures and a map');
  });

  test('names that begin with what they are a part of', () => {
    const text =
      '<p>Bees fly low over the meadow in the morning, when the grass is wet and the wind is down.</p>'.repeat(
        9,
      );
    const share = '<p>Send this page to a friend who keeps bees and would like to know when they fly.</p>';
    const page = (name: string) =>
      contentOf(
        `<title>Bees</title><article><h1>Bees</h1><div>${text}<div class="${name}">${share}</div>${text}</div></article>`,
      );
    for (const name of ['article__share', 'page-sidebar', 'content-newsletter', 'article-tags'])
      expect(page(name).markdown, name).not.toContain('to a friend');
    for (const name of ['share-article', 'newsletter-content', 'article-no-sidebar', 'article-part'])
      expect(page(name).markdown, name).toContain('to a friend');
  });

  test('the frozen half of the corpus is found, and nearly nothing else', () => {
    const rates = contentPages('frozen').map((page) =>
      rateText(page, textOfMarkdown(contentOf(page.html).markdown)),
    );
    const { precision, recall } = meanOf(rates);
    expect(precision).toBeGreaterThan(0.97);
    expect(recall).toBeGreaterThan(0.97);
  });
});

describe('the title', () => {
  const titleOf = (head: string, body = '') => contentOf(`<head>${head}</head><body>${body}`).title;

  test.each([
    ['<meta property=og:title content="A"><title>B</title>', '<h1>C</h1>', 'A'],
    ['<meta property=og:title content=" "><title>B</title>', '<h1>C</h1>', 'C'],
    ['<title>B\n b</title>', '', 'B b'],
    ['<title>B</title>', '<h1><a href=/><img src=/l.png></a></h1><h1>C</h1>', 'C'],
    ['<title>B</title>', '<h1 hidden>no</h1><svg><title>icon</title></svg>', 'B'],
    ['<meta property=og:title content="A - Site"><meta property=og:site_name content="Site">', '', 'A'],
    ['<meta property=og:title content="A | Site">', '<h1>A</h1>', 'A'],
    ['<meta property=og:title content="A - b">', '<h1>C</h1>', 'A - b'],
    ['<title>Bees in a small garden | Garden pages</title>', '<p>Bees', 'Bees in a small garden'],
    ['<title>Bees | Garden pages</title>', '<p>Bees', 'Bees | Garden pages'],
    [
      '<title>Garden pages of the north | Bees in a very small garden</title>',
      '',
      'Garden pages of the north | Bees in a very small garden',
    ],
    ['<meta property=og:title content="Site"><meta property=og:site_name content="Site">', '', 'Site'],
  ])('%s %s', (head, body, title) => {
    expect(titleOf(head, body)).toBe(title);
  });
});
