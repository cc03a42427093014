import { type CommandSpec, help, json, withBlobs } from './command-spec.ts';
import { RUN } from './run-spec.ts';

/** Commands of the first hour: a folder to start in, a shop to practise on, one page to look at. */

export const INIT: CommandSpec = {
  args: '[shop|images|sitemap|browser|empty] [url]',
  argsMax: 2,
  summary: 'Write a job that runs as it is: job file, settings for the editor, and a short README.',
  details:
    'The template shop follows links and reads products, images stores the files of a list, sitemap turns pages into Markdown, browser reads pages that need JavaScript.\n' +
    'Without a URL the job reads the practice shop of `seine shop`. Files that exist are never overwritten.',
  options: {
    into: { kind: 'value', value: 'folder', doc: 'Where to write. Default: the current folder' },
    yaml: {
      kind: 'flag',
      doc: 'Write YAML instead of TypeScript, with the line that gives editors its schema.',
    },
    json: { kind: 'flag', doc: 'Print the names of the files as JSON.' },
    help,
  },
  examples: [
    'seine init shop',
    'seine init sitemap https://example.com/',
    'seine init images --yaml --into photos',
  ],
};

export const TRY: CommandSpec = {
  args: '<job file | job | url> [url]',
  argsMax: 2,
  summary: 'Fetch one page and show what a job extracts from it: record, selectors, links, timing.',
  details:
    'It obeys robots.txt, requests one page only, and leaves nothing behind. With a job file and no URL, it takes the first URL of the sources.',
  options: {
    select: RUN.options.select!,
    follow: RUN.options.follow!,
    browser: RUN.options.browser!,
    'wait-for': RUN.options['wait-for']!,
    'user-agent': RUN.options['user-agent']!,
    contact: RUN.options.contact!,
    'no-robots': RUN.options['no-robots']!,
    'allow-private': RUN.options['allow-private']!,
    json,
    ...withBlobs,
  },
  examples: [
    'seine try shop.ts',
    'seine try shop.ts https://shop.example/product/7',
    'seine try https://shop.example/ --select title=h1 --follow',
    'seine try https://shop.example/ --browser --json',
  ],
};

export const SHOP: CommandSpec = {
  args: '',
  argsMax: 0,
  summary: 'Serve a practice shop on this machine, to try jobs on.',
  details:
    'Listens on 127.0.0.1 only. It has 300 products, and a few broken links on purpose. Two pages are for practice and linked nowhere: /new grows while you scroll, /account/orders wants a login (guest, guest).',
  options: {
    port: { kind: 'value', value: 'n', doc: 'Port to listen on; 0 takes a free one. Default: 8080' },
    scripted: { kind: 'flag', doc: 'Draw the pages with JavaScript, so that they need a browser.' },
    day: {
      kind: 'value',
      value: 'n',
      doc: 'Show the shop on a later day: other prices, new products, some gone. Default: 1',
    },
    json: { kind: 'flag', doc: 'Print the URL as JSON.' },
    help,
  },
  examples: ['seine shop', 'seine shop --day 2', 'seine shop --port 8081 --scripted'],
};

export const COMPLETION: CommandSpec = {
  args: 'bash|zsh|fish',
  argsMax: 1,
  summary: 'Print a script that completes commands and options in a shell.',
  options: { help },
  examples: [
    'source <(seine completion bash)',
    'seine completion zsh > ~/.zfunc/_seine',
    'seine completion fish > ~/.config/fish/completions/seine.fish',
  ],
};
