import { type ExitName, SeineError } from '../../../core/errors.ts';
import { CASES, pathsOf } from '../../../sites/hostile/behaviours.ts';
import { type HostileWeb, startHostileWeb } from '../../../sites/hostile/hostile-web.ts';
import { type Context, printJson } from '../../context.ts';
import { watchSignals } from '../run/watch-signals.ts';

/** The last port that leaves room for those with TLS behind it. */
const PORT_MAX = 65_530;

/** Serves everything that servers do to crawlers, until a signal comes. */
export async function hostileCommand(context: Context): Promise<ExitName> {
  if (context.parsed.values.list === 'true') {
    printList(context);
    return 'success';
  }
  const web = await open(portOf(context.parsed.values.port));
  const signals = watchSignals({ secondExits: true });
  if (context.json) printJson(context, { url: web.url, secure: web.secure, authority: web.authority });
  else context.stdout.write(greeting(web));
  await signals.first;
  signals.close();
  await web.close();
  return 'success';
}

function portOf(text: string | undefined): number {
  const port = Number(text ?? 0);
  if (Number.isInteger(port) && port >= 0 && port <= PORT_MAX) return port;
  throw new SeineError(`--port must be a number up to ${PORT_MAX}, got '${text}'`);
}

async function open(port: number): Promise<HostileWeb> {
  try {
    return await startHostileWeb({ port });
  } catch (error) {
    const { code, port: taken } = error as NodeJS.ErrnoException & { port?: number };
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    throw new SeineError(`cannot listen on port ${taken ?? port} (${code})`, {
      hint: 'choose another --port, or leave it out to use free ports; the next five ports are used for TLS',
    });
  }
}

function greeting({ url, secure }: HostileWeb): string {
  const ports = Object.entries(secure).map(([name, place]) => `  ${place}/  ${name}`);
  return [
    `${url}/ lists ${CASES.length} test cases`,
    'With TLS:',
    ...ports,
    `Try it: seine run ${url}/ --follow --allow-private`,
    'Press Ctrl-C to stop.\n',
  ].join('\n');
}

function printList(context: Context): void {
  if (context.json) {
    const rows = CASES.map(({ base, what, ending, or = [], why = null, behaviour, ...rest }) => ({
      number: behaviour.number,
      paths: pathsOf({ base, behaviour, what, ending, ...rest }),
      what,
      endings: [ending, ...or],
      why,
    }));
    for (const row of rows) printJson(context, row);
    return;
  }
  const width = Math.max(...CASES.map(({ base }) => base.length));
  const lines = CASES.map(({ base, ending, what }) => `${base.padEnd(width)}  ${ending.padEnd(15)}  ${what}`);
  context.stdout.write(`${lines.join('\n')}\n`);
}
