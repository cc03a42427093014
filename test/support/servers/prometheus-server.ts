import { spawn } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { provideProgram } from './provide-program.ts';
import { delay, findFreePort, ServerHome } from './server-process.ts';

const PACKAGE = { package: 'prometheus' };
const READY_MS_MAX = 60_000;
const START_TRIES = 5;

/** What promtool says, and how it ended. */
export async function promtool(
  args: readonly string[],
  { input = '', cwd }: { input?: string; cwd?: string } = {},
): Promise<{ code: number | null; output: string }> {
  const program = await provideProgram('promtool', PACKAGE);
  const child = spawn(program, args, { stdio: 'pipe', ...(cwd ? { cwd } : {}) });
  let output = '';
  const keep = (chunk: Buffer) => {
    output += chunk.toString();
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

export interface PrometheusServer {
  /** Values of an instant query, with their labels. */
  query(text: string): Promise<{ metric: Record<string, string>; value: number }[]>;
  stop(): Promise<void>;
}

/** A Prometheus of its own that scrapes the targets every second. */
export async function startPrometheus(targets: readonly string[]): Promise<PrometheusServer> {
  const program = await provideProgram('prometheus', PACKAGE);
  const home = await ServerHome.make('prometheus');
  const config = join(home.folder, 'prometheus.yaml');
  await writeFile(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s' },
      scrape_configs: [{ job_name: 'seine', honor_labels: true, static_configs: [{ targets }] }],
    }),
  );
  await chmod(config, 0o644);
  try {
    const url = await start(home, program, config);
    return {
      async query(text) {
        const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(text)}`);
        const { data } = (await answer.json()) as {
          data: { result: { metric: Record<string, string>; value: [number, string] }[] };
        };
        return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
      },
      async stop() {
        await home.end('SIGKILL');
        await home.remove();
      },
    };
  } catch (error) {
    await home.end('SIGKILL');
    await home.remove();
    throw error;
  }
}

async function start(home: ServerHome, program: string, config: string): Promise<string> {
  for (let tries = 1; ; tries++) {
    const port = await findFreePort();
    home.start(program, [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(home.folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const url = `http://127.0.0.1:${port}`;
    const givenUpAt = performance.now() + READY_MS_MAX;
    while (home.running && performance.now() < givenUpAt) {
      const isReady = await fetch(`${url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
      if (isReady) return url;
      await delay(20);
    }
    // Somebody else may have taken the port meanwhile.
    if (tries === START_TRIES) throw new Error(`Prometheus did not start: ${home.output}`);
    await home.end('SIGKILL');
  }
}
