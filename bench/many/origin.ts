/** nginx on many loopback addresses: each is a host of its own, and every path on it has the same page. */
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, openSync, readSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { findNginx } from '../origin-nginx.ts';
import type { Scratch } from '../scratch.ts';
import { writeSite } from '../site.ts';

export interface Request {
  /** Seconds since 1970, with milliseconds. */
  at: number;
  host: string;
  path: string;
}

export interface ManyHosts {
  /** `127.0.9.1:port` and so on. */
  hosts: string[];
  /** What was requested since the last call, in the order of the answers. */
  takeLog(): Request[];
}

/** The port is free on one address, so very likely on its neighbours. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.9.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function openManyHosts(scratch: Scratch, count: number): Promise<ManyHosts> {
  const nginx = findNginx(true);
  if (nginx === undefined) throw new Error('nginx is needed: apt-get install nginx-light');
  const folder = scratch.memoryFolder('many-origin');
  const site = join(folder, 'site');
  mkdirSync(site);
  writeSite(site, 50);
  const port = await freePort();
  const hosts = Array.from({ length: count }, (_, at) => `127.0.9.${at + 1}:${port}`);
  const log = join(folder, 'access.log');
  writeFileSync(join(folder, 'nginx.conf'), configText({ site, folder, hosts, log }));
  const child = spawn(nginx, ['-c', join(folder, 'nginx.conf'), '-p', folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  scratch.onEnd(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  while (!(await fetch(`http://${hosts.at(-1)}/`).catch(() => null))?.ok) {
    if (child.exitCode !== null) throw new Error('nginx ended at once');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  const file = openSync(log, 'r');
  scratch.onEnd(() => closeSync(file));
  let position = 0;
  let rest = '';
  const takeLog = (): Request[] => {
    const bytes = Buffer.alloc(fstatSync(file).size - position);
    position += readSync(file, bytes, 0, bytes.length, position);
    const lines = (rest + bytes.toString('latin1')).split('\n');
    rest = lines.pop()!;
    return lines.map((line) => {
      const [at = '', host = '', path = ''] = line.split(' ');
      return { at: Number(at), host, path };
    });
  };
  takeLog();
  return { hosts, takeLog };
}

function configText(plan: { site: string; folder: string; hosts: string[]; log: string }): string {
  const { site, folder, hosts, log } = plan;
  return `daemon off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log warn;
worker_processes 1;
${process.getuid?.() === 0 ? 'user root;' : ''}
events { worker_connections 8192; multi_accept on; }
http {
  default_type text/html;
  log_format line '$msec $http_host $request_uri';
  access_log ${log} line;
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
  server {
    ${hosts.map((host) => `listen ${host} backlog=1024;`).join('\n    ')}
    root ${site};
    location / { try_files /index.html =404; }
  }
}
`;
}
