/** nginx as the origin: it costs the least CPU per page, so that the crawlers are measured and not the server. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

export interface Origin {
  kind: string;
  pid: number;
  url: string;
  /** The same site with an access log, for check rounds. */
  loggedUrl: string;
  /** Requests answered since the start, over both ports. */
  requestsSeen(): Promise<number>;
  /** Paths asked for on `loggedUrl` since the last call, one entry per request: `status path`. */
  takeLog(): Promise<string[]>;
  close(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('no port from the OS');
  return address.port;
}

/** Finds nginx; on Debian as root it is installed, since a missing one would change what is measured. */
export function findNginx(install: boolean): string | undefined {
  for (const path of [
    '/usr/sbin/nginx',
    '/usr/local/sbin/nginx',
    '/usr/bin/nginx',
    '/opt/homebrew/bin/nginx',
  ]) {
    if (existsSync(path)) return path;
  }
  if (!install || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return undefined;
  try {
    process.stderr.write('installing nginx-light …\n');
    // Debian starts a service on install otherwise; the benchmark wants only the binary.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', 'nginx-light'], {
      env,
      stdio: 'ignore',
    });
  } catch {
    return undefined;
  }
  return existsSync('/usr/sbin/nginx') ? '/usr/sbin/nginx' : undefined;
}

interface NginxPlan {
  site: string;
  folder: string;
  port: number;
  loggedPort: number;
  workers: number;
}

/**
 * No open_file_cache: each page is asked for once a crawl, so it saved nothing measurable (30 µs of CPU a page
 * with and without), and 20,000 open files are over the hard limit of many machines, which nginx answers with 500.
 */
function configText({ site, folder, port, loggedPort, workers }: NginxPlan): string {
  const shared = `
    root ${site};
    index index.html;
    location = /-/status { stub_status; access_log off; }`;
  return `daemon off;
master_process on;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log warn;
worker_processes ${workers};
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 8192; multi_accept on; }
http {
  default_type text/html;
  types { text/html html; text/plain txt; image/jpeg jpg; }
  charset utf-8;
  access_log off;
  log_format line '$status $request_uri';
  sendfile on;
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_timeout 300;
  keepalive_requests 100000000;
  client_body_temp_path ${folder}/t1;
  proxy_temp_path ${folder}/t2;
  fastcgi_temp_path ${folder}/t3;
  uwsgi_temp_path ${folder}/t4;
  scgi_temp_path ${folder}/t5;
  server { listen 127.0.0.1:${port} reuseport backlog=4096; ${shared} }
  server { listen 127.0.0.1:${loggedPort} reuseport backlog=4096; access_log ${folder}/access.log line; ${shared} }
}
`;
}

export async function openNginx(
  binary: string,
  site: string,
  folder: string,
  workers: number,
): Promise<Origin> {
  const port = await freePort();
  const loggedPort = await freePort();
  const logFile = join(folder, 'access.log');
  const configFile = join(folder, 'nginx.conf');
  writeFileSync(configFile, configText({ site, folder, port, loggedPort, workers }));
  const child = spawn(binary, ['-c', configFile, '-p', folder], { stdio: ['ignore', 'ignore', 'pipe'] });
  let trouble = '';
  child.stderr.on('data', (chunk: Buffer) => {
    trouble += chunk.toString();
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const url = `http://127.0.0.1:${port}/`;
  for (let attempt = 0; ; attempt++) {
    if (child.exitCode !== null) throw new Error(`nginx ended at once: ${trouble.trim()}`);
    const answer = await fetch(`${url}-/status`).catch(() => undefined);
    if (answer?.ok) break;
    if (attempt > 200) throw new Error(`nginx does not answer on ${url}: ${trouble.trim()}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  let logOffset = 0;
  let statusRequests = 0;
  return {
    kind: `${binary.split('/').pop()} ${workers} worker${workers === 1 ? '' : 's'}`,
    pid: child.pid ?? 0,
    url,
    loggedUrl: `http://127.0.0.1:${loggedPort}/`,
    async requestsSeen() {
      const text = await (await fetch(`${url}-/status`)).text();
      statusRequests += 1;
      // "server accepts handled requests\n 11 11 42"; our own status requests are taken out.
      const numbers = text.split('\n')[2]?.trim().split(' ') ?? [];
      return Number(numbers[2]) - statusRequests;
    },
    async takeLog() {
      const text = existsSync(logFile) ? readFileSync(logFile, 'utf8') : '';
      const fresh = text.slice(logOffset);
      logOffset = text.length;
      return fresh.split('\n').filter((line) => line !== '');
    },
    async close() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
