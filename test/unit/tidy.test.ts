import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

/** Rules that no compiler checks: what may import what, and what may not be left lying around. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

function filesIn(folder: string, endings: string[]): string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && endings.includes(extname(entry.name)))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !path.includes('node_modules'))
    .sort();
}

const textOf = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const SOURCES = filesIn('src', ['.ts']);
const TESTS = filesIn('test', ['.ts']);

interface Import {
  from: string;
  /** A path from the root for our own files, else the name of the module. */
  to: string;
  types: boolean;
}

const IMPORT =
  /(?:^|\n)(?:import|export)\s+(type\s)?[^;'"]*?from\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)|(?:^|\n)import\s+'([^']+)'/g;

function importsOf(path: string): Import[] {
  return [...textOf(path).matchAll(IMPORT)].map(([, type, from, lazy, bare]) => {
    const name = (from ?? lazy ?? bare)!;
    const to = name.startsWith('.') ? join(dirname(path), name) : name;
    return { from: path, to, types: type !== undefined };
  });
}

const IMPORTS = SOURCES.flatMap(importsOf);
/** Their packages are part of the build, and not installed with it. */
const BUNDLED = [...textOf('scripts/build/bundle-packages.ts').matchAll(/^ {2}'([\w/-]+)',$/gm)].map(
  ([, path]) => `src/${path}.ts`,
);
const OWN = IMPORTS.filter(({ to }) => to.startsWith('src/'));

/** A layer is a folder, or for the few files beside the folders, the file. Both stores and what they share are three. */
function layerOf(path: string): string {
  const parts = path.split('/').slice(1);
  return parts[0] === 'store' ? parts.slice(0, 2).join('/') : parts[0]!;
}

const ADAPTERS = ['store/sqlite', 'store/postgres', 'blobs', 'transport', 'fetch', 'sources'];
const PARTS = [
  'core',
  'ports',
  'aws',
  'network',
  'machine',
  'worker',
  'coordinator',
  'store/shared',
  ...ADAPTERS,
  'job-file',
  'reparse',
  'tables',
  'config',
  'tui',
];

/** Imports point down. Every layer may import itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  core: [],
  ports: ['core'],
  aws: ['core', 'ports'],
  network: ['core'],
  machine: ['core'],
  worker: ['core', 'ports'],
  coordinator: ['core', 'ports'],
  ...Object.fromEntries(ADAPTERS.map((adapter) => [adapter, ['core', 'ports', 'aws', 'network', 'machine']])),
  'store/shared': ['core', 'ports'],
  'store/sqlite': ['core', 'ports', 'machine', 'store/shared'],
  'store/postgres': ['core', 'ports', 'store/shared'],
  'job-file': ['core', 'ports', 'worker'],
  reparse: ['core', 'ports', 'worker', 'coordinator'],
  tables: [],
  config: ['core', 'machine'],
  // For other programs: `fetch` alone.
  client: [],
  tui: ['core', 'coordinator'],
  sites: ['core'],
  // Composition: wires the parts together, and is the only room that knows all adapters.
  app: PARTS,
  'library.ts': [...PARTS, 'app'],
  'index.ts': [...PARTS, 'library.ts'],
  entry: [...PARTS, 'app'],
  'lambda-emulator': ['core', 'ports', 'aws', 'config', 'transport'],
  observe: [...PARTS, 'app'],
  // Commands over the engine: they try something out before a run, or conclude from runs.
  tune: [...PARTS, 'app'],
  server: [...PARTS, 'app', 'observe', 'tune', 'client'],
  cli: [
    ...PARTS,
    ...['app', 'observe', 'tune', 'server', 'client', 'library.ts', 'sites', 'entry', 'lambda-emulator'],
  ],
};

/** What pure code may use of Node: nothing that reads, waits or remembers. */
const NODE_IN_CORE: Record<string, readonly string[]> = {
  'src/core/keys/api-key.ts': ['node:crypto'],
  'src/core/url/address.ts': ['node:net'],
  'src/core/politeness/host-groups.ts': ['node:net'],
  'src/core/text/charset.ts': ['node:buffer', 'node:util'],
  'src/core/host-log/host-log.ts': ['node:crypto'],
  'src/core/webhooks/webhook.ts': ['node:crypto'],
  'src/core/media/md5.ts': ['node:crypto'],
  'src/core/warc/members.ts': ['node:zlib'],
  'src/core/warc/zip.ts': ['node:zlib'],
  'src/core/warc/gzip.ts': ['node:zlib'],
  'src/core/sitemap/bytes.ts': ['node:util', 'node:zlib'],
  'src/core/warc/warc.ts': ['node:crypto'],
};

/** Besides config: the terminal's own variables for the dashboard, and where a stack trace is wanted. */
const READS_ENVIRONMENT = [
  'src/cli/command-line.ts',
  'src/cli/commands/run/follow-run.ts',
  'src/cli/commands/run/follow-served.ts',
  'src/cli/program-name.ts',
  'src/config/lambda-runtime.ts',
  'src/config/load.ts',
];

describe('layers', () => {
  test('every file belongs to one', () => {
    const unknown = SOURCES.filter((path) => !(layerOf(path) in MAY_IMPORT));
    expect(unknown).toEqual([]);
  });

  test('imports point down', () => {
    const wrong = OWN.filter(({ from, to }) => {
      const [above, below] = [layerOf(from), layerOf(to)];
      return above !== below && !MAY_IMPORT[above]?.includes(below);
    });
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  test('the terminal knows of the coordinator only what a run looks like', () => {
    const wrong = OWN.filter(
      ({ from, to }) => layerOf(from) === 'tui' && layerOf(to) === 'coordinator',
    ).filter(({ to, types }) => to !== 'src/coordinator/reports/run-view.ts' || !types);
    expect(wrong.map(({ from, to }) => `${from} → ${to}`)).toEqual([]);
  });

  test('every import of ours names a file that is there, with its ending', () => {
    expect(OWN.filter(({ to }) => !SOURCES.includes(to))).toEqual([]);
    expect(IMPORTS.length).toBeGreaterThan(300);
  });

  test('every package that is imported is a dependency, and the other way round', () => {
    const { dependencies, peerDependencies } = JSON.parse(textOf('package.json')) as Record<
      'dependencies' | 'peerDependencies',
      Record<string, string>
    >;
    const packageOf = (name: string) =>
      name
        .split('/')
        .slice(0, name.startsWith('@') ? 2 : 1)
        .join('/');
    const packages = IMPORTS.filter(({ to }) => !to.startsWith('src/') && !to.startsWith('node:'));
    const used = new Set(
      packages.filter(({ from }) => !BUNDLED.includes(from)).map(({ to }) => packageOf(to)),
    );
    expect(packages.some(({ from }) => BUNDLED.includes(from))).toBe(true);
    expect([...used].sort()).toEqual(Object.keys({ ...dependencies, ...peerDependencies }).sort());
  });

  test('pure code has no doors to the outside', () => {
    const wrong = IMPORTS.filter(
      ({ from, to }) => from.startsWith('src/core/') && to.startsWith('node:'),
    ).filter(({ from, to }) => !NODE_IN_CORE[from]?.includes(to));
    expect(wrong).toEqual([]);
    const stale = Object.entries(NODE_IN_CORE).flatMap(([path, names]) =>
      names
        .filter((name) => !IMPORTS.some(({ from, to }) => from === path && to === name))
        .map((name) => `${path} ${name}`),
    );
    expect(stale).toEqual([]);
    const doors =
      /\b(process\.|Date\.now|new Date\(\)|Math\.random|performance\.|setTimeout|setInterval|fetch\()/;
    expect(SOURCES.filter((path) => path.startsWith('src/core/') && doors.test(codeOf(path)))).toEqual([]);
  });

  test('coordinator and worker get time and chance from outside', () => {
    const chance = /\b(Date\.now|new Date\(\)|Math\.random|performance\.now)\b/;
    // The one clock itself.
    const clock = 'src/worker/batch/system-clock.ts';
    const inner = SOURCES.filter((path) => path !== clock && /^src\/(coordinator|worker|ports)\//.test(path));
    expect(inner.filter((path) => chance.test(codeOf(path)))).toEqual([]);
    // Virtual time needs every timer; a look at a name server takes real time anyway.
    const timers = /\b(setTimeout|setInterval)\b/;
    expect(inner.filter((path) => timers.test(codeOf(path)))).toEqual([
      'src/coordinator/hosts/host-groups.ts',
      'src/ports/ambient.ts',
    ]);
  });

  test('no circles, apart from types', () => {
    expect(circlesOf(OWN.filter(({ types }) => !types))).toEqual([]);
  });

  test('folders of a layer have no circles either, apart from types', () => {
    // Files beside the folders stand for themselves: they start what the folders do, or are what all of them use.
    const nodeOf = (path: string) =>
      dirname(path) === `src/${layerOf(path)}` || dirname(path) === 'src' ? path : dirname(path);
    const edges = OWN.filter(({ types }) => !types)
      .map(({ from, to }) => ({ from: nodeOf(from), to: nodeOf(to) }))
      .filter(({ from, to }) => from !== to);
    expect(edges.length).toBeGreaterThan(300);
    expect(circlesOf(edges)).toEqual([]);
  });

  test('the environment is read in one place', () => {
    expect(SOURCES.filter((path) => /process\.env\b/.test(codeOf(path)))).toEqual(READS_ENVIRONMENT);
  });

  test('cores and memory are asked for in one place, which knows the limits of cgroups', () => {
    const asks = /\b(availableParallelism|cpus|totalmem|freemem|availableMemory|constrainedMemory)\(/;
    expect(SOURCES.filter((path) => asks.test(codeOf(path)))).toEqual(['src/machine/machine.ts']);
  });
});

function circlesOf(edges: readonly { from: string; to: string }[]): string[] {
  const below = new Map<string, Set<string>>();
  for (const { from, to } of edges) below.set(from, (below.get(from) ?? new Set()).add(to));
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (node: string, path: string[]): void => {
    if (path.includes(node)) {
      circles.push([...path.slice(path.indexOf(node)), node].join(' → '));
      return;
    }
    if (done.has(node)) return;
    for (const next of below.get(node) ?? []) visit(next, [...path, node]);
    done.add(node);
  };
  for (const node of below.keys()) visit(node, []);
  return circles;
}

/** Without comments and strings, roughly: enough to tell use from mention. */
function codeOf(path: string): string {
  return textOf(path)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '')
    .replace(/'(?:[^'\\\n]|\\.)*'/g, "''");
}

describe('exports', () => {
  const MODULES = [
    ...SOURCES,
    ...TESTS,
    ...filesIn('scripts', ['.ts']),
    ...filesIn('bench', ['.ts']),
    ...filesIn('fuzz', ['.ts']),
    ...filesIn('web', ['.ts', '.tsx']),
  ];
  const READERS = [
    ...MODULES,
    ...filesIn('examples', ['.ts']),
    ...filesIn('bin', ['.js']),
    'vitest.config.ts',
  ];
  const NAMED = /^(?:import|export)\s+(?:type\s+)?(?:\w+\s*,\s*)?\{([^}]*)\}\s+from\s+'([^']+)'/gm;
  const WHOLE = /^import\s+\*\s+as\s+\w+\s+from\s+'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm;
  const DECLARED =
    /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type|enum)\s+(\w+)/gm;
  const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}/gm;

  /** `{ type A, b as c }`: the names on the other side of the import, or on this side. */
  const namesIn = (list: string, side: 'theirs' | 'ours') =>
    list
      .split(',')
      .map((name) => name.trim().replace(/^type\s+/, ''))
      .filter((name) => name !== '')
      .map((name) => name.split(/\s+as\s+/).at(side === 'theirs' ? 0 : -1)!);

  /** Built files are named by the program that starts them. */
  const moduleOf = (from: string, name: string) =>
    join(dirname(from), name)
      .replace(/^dist\//, 'src/')
      .replace(/\.js$/, '.ts');

  test('are used by another file, or are not exports', () => {
    const used = new Set<string>();
    const readWhole = new Map<string, string[]>();
    for (const path of READERS) {
      const text = textOf(path);
      for (const [, list, name] of text.matchAll(NAMED))
        for (const theirs of namesIn(list!, 'theirs')) used.add(`${moduleOf(path, name!)} ${theirs}`);
      for (const [, star, lazy] of text.matchAll(WHOLE)) {
        const module = moduleOf(path, (star ?? lazy)!);
        readWhole.set(module, [...(readWhole.get(module) ?? []), text]);
      }
    }
    // What the package offers, and what bin/seine.js starts by a name that it makes.
    const roots = [
      ...['src/index.ts', 'src/client/client.ts'],
      ...['src/cli/report-main.ts', 'src/cli/run-main.ts'],
    ];
    // A test file exports nothing; what looks like it is the text of a file that it writes.
    const offering = MODULES.filter((path) => !roots.includes(path) && !path.endsWith('.test.ts'));
    const unused = offering.flatMap((path) => {
      const text = textOf(path);
      const names = [
        ...[...text.matchAll(DECLARED)].map(([, name]) => name!),
        ...[...text.matchAll(LISTED)].flatMap(([, list]) => namesIn(list!, 'ours')),
      ];
      // What is bundled is passed on as a whole.
      const readers = BUNDLED.includes(path)
        ? SOURCES.filter((other) => other !== path).map(textOf)
        : readWhole.get(path);
      const isRead = (name: string) => readers?.some((other) => new RegExp(`\\b${name}\\b`).test(other));
      return names
        .filter((name) => !used.has(`${path} ${name}`) && !isRead(name))
        .map((name) => `${path}: ${name}`);
    });
    expect(unused).toEqual([]);
    expect(used.size).toBeGreaterThan(1_000);
  });
});

describe('files', () => {
  test('are named in kebab-case, for what is in them', () => {
    const named = [...SOURCES, ...TESTS].map((path) => basename(path));
    expect(named.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.ts$/.test(name))).toEqual([]);
    const vague = /^(utils?|helpers?|common|misc|lib)\b/;
    expect([...SOURCES, ...TESTS].filter((path) => path.split('/').some((part) => vague.test(part)))).toEqual(
      [],
    );
  });

  test('end with a newline and have no trailing spaces or tabs', () => {
    const untidy = [...SOURCES, ...TESTS].filter(
      (path) => !/[^\n]\n$/.test(textOf(path)) || /[ \t]$/m.test(textOf(path)),
    );
    expect(untidy).toEqual([]);
  });

  test.each([
    ['work left over', /\b(TODO|FIXME|XXX|HACK)\b/],
    [
      'type checks turned off',
      /@ts-(ignore|nocheck|expect-error)|\bas any\b|: any\b|<any>|\bas unknown as\b/,
    ],
    ['a default export', /^export default\b/m],
    ['everything exported at once', /^export \*/m],
    ['a debugger or a stray print', /\bdebugger;|console\.(log|debug|trace)/],
    ['lint checks turned off', /biome-ignore-all|eslint-disable/],
  ])('in src there is never %s', (_, pattern) => {
    const found = SOURCES.filter((path) =>
      pattern.test(path.startsWith('src/job-file/') ? codeOf(path) : textOf(path)),
    );
    expect(found).toEqual([]);
  });

  test.each([
    ['singled out or left out', /\.(only|skip|todo|skipIf|runIf)\b/],
    ['left out from inside', /\{[^{}]*\bskip\b[^{}]*\}\) =>/],
    ['left out by an option', /\b(skip|todo|fails): true/],
    ['tried again', /\b(retry|repeats): *\d/],
    ['cast past the compiler', /\bas unknown as\b/],
  ])('no test is %s', (_, pattern) => {
    const found = [...TESTS, 'vitest.config.ts'].filter((path) => pattern.test(textOf(path)));
    expect(found.filter((path) => path !== 'test/unit/tidy.test.ts')).toEqual([]);
  });

  test('the command that runs the tests tries none again', () => {
    for (const path of ['scripts/test.ts', 'package.json', 'vitest.config.ts'])
      expect(textOf(path)).not.toMatch(/--retry|passWithNoTests/);
  });

  test('tests read nothing outside of the repository', () => {
    const up =
      /(?:\b(?:readFile|readdir|exists|open|createReadStream|stat|access)(?:Sync)?\(\s*|\bconst \w+ = )['"`]\.\.\/|\(ROOT, *['"`]\.\./g;
    const own = /(?:new URL\(|import\.meta\.dirname,)\s*['"`]([^'"`]+)['"`]/g;
    const wrong = TESTS.flatMap((path) => {
      const text = textOf(path);
      const ways = [...text.matchAll(own)].map(([, way]) => way!).filter((way) => way.startsWith('.'));
      const leaving = ways.filter((way) => relative(ROOT, join(ROOT, dirname(path), way)).startsWith('..'));
      return [...leaving, ...(text.match(up) ?? [])].map((found) => `${path}: ${found}`);
    });
    expect(wrong).toEqual([]);
  });
});

describe('words', () => {
  const texts = [
    ...SOURCES,
    ...TESTS,
    ...['docs', 'examples', 'scripts', 'fuzz', 'bench', 'bin', 'deploy'].flatMap((folder) =>
      filesIn(folder, ['.ts', '.js', '.md', '.yaml', '.json']),
    ),
    ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'package.json'].filter((path) =>
      existsSync(join(ROOT, path)),
    ),
  ].filter((path) => path !== 'test/unit/tidy.test.ts');

  /** Lines that speak of how this was made rather than of what it does. */
  function speaking(pattern: RegExp, meant: RegExp): string[] {
    return texts.flatMap((path) =>
      textOf(path)
        .split('\n')
        .map((line, index) => ({ line, place: `${path}:${index + 1}` }))
        .filter(({ line }) => pattern.test(line.replace(meant, '')))
        .map(({ place, line }) => `${place}: ${line.trim().slice(0, 120)}`),
    );
  }

  /** Where these words mean something of the web: robots.txt, TLS, URLs, another crawler's settings. */
  const MEANT = {
    agent: [
      'fuzz/targets/http.ts',
      'bench/package-lock.json',
      'src/core/robots/robots.ts',
      'src/fetch/browser/proxy/filter-proxy.ts',
      'src/fetch/browser/proxy/forward-plain.ts',
      'src/network/guarded-connections.ts',
    ],
    session: [
      'bench/contenders/crawlee-child.ts',
      'docs/benchmarks.md',
      'src/core/url/pattern.ts',
      'src/fetch/network/dial.ts',
      'src/fetch/http/origin-pool.ts',
      'docs/reliability.md',
      'src/sites/hostile/traps.ts',
      'test/e2e/hostile/hostile.test.ts',
      'test/integration/store/postgres/postgres-open.test.ts',
      'test/unit/core/url/pattern.test.ts',
    ],
  };

  test.each(['agent', 'session'] as const)('of %ss only in the sense of the web', (word) => {
    const found = speaking(new RegExp(`\\b${word}s?\\b`, 'i'), /user[- ]?agents?/gi);
    expect(found.filter((place) => !MEANT[word].some((path) => place.startsWith(`${path}:`)))).toEqual([]);
  });

  test('of no issue by number, no machine and no place outside', () => {
    expect(speaking(/\bissues? #?\d+|(^|[\s(])#\d+\b/i, /`[^`]*`|'[^']*'/g)).toEqual([]);
    expect(speaking(/\/work\/|\/root\/|\/tmp\/brief/, /^$/)).toEqual([]);
    expect(speaking(/\b(claude|chatgpt|gpt-\d|copilot|llm)\b/i, /^$/)).toEqual([]);
  });
});

describe('the lock file', () => {
  test('names no registry, so that any will do', () => {
    const lock = textOf('package-lock.json');
    expect(
      lock.match(/"resolved": "[^"]*"/g)?.filter((line) => !line.includes('"resolved": "file:')) ?? [],
    ).toEqual([]);
    expect(lock).not.toMatch(
      /https?:\/\/(?!opencollective|github\.com|paypal|www\.|tidelift|feross|dotenvx|ko-fi|polar|patreon|buymeacoffee)[^"]*\.tgz/,
    );
  });

  test('fits package.json', () => {
    const own = JSON.parse(textOf('package.json')) as Record<string, Record<string, string>>;
    const lock = JSON.parse(textOf('package-lock.json')) as {
      packages: Record<string, Record<string, Record<string, string>>>;
    };
    expect(lock.packages['']!.dependencies).toEqual(own.dependencies);
    expect(lock.packages['']!.devDependencies).toEqual(own.devDependencies);
  });
});
