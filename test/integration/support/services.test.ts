import { spawn, spawnSync } from 'node:child_process';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { ordinaryUser } from '../../support/ordinary-user.ts';
import { startPostgres, startRedis } from '../../support/servers/services.ts';

const SUPPORT = join(import.meta.dirname, '../../support/servers/services.ts');

async function ask(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  const { rows } = await client.query(statement);
  await client.end();
  return rows;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

test('a program that is missing, and that nobody may install, is an error that says what to do', async () => {
  const module = join(import.meta.dirname, '../../support/servers/provide-program.ts');
  const code = `
    const { provideProgram } = await import(${JSON.stringify(module)});
    for (const variable of ['REDIS_URL', undefined])
      await provideProgram('no-such-program', { package: 'such-programs', variable }).catch((error) => console.log(error.message));`;
  const user = ordinaryUser();
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    ...{ uid: user, gid: user, cwd: '/', encoding: 'utf8' },
  });
  expect(stdout.trim().split('\n'), stderr).toEqual([
    'no-such-program was not found: install the package such-programs, or set REDIS_URL to a server that tests may use',
    'no-such-program was not found: install the package such-programs',
  ]);
});

test('a killed PostgreSQL comes back on its port with what was committed', async () => {
  const server = await startPostgres({ own: true, fsync: true });
  try {
    const url = await server.createDatabase();
    await ask(url, 'CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)');
    await server.kill9();
    expect(await isOpen(server.port)).toBe(false);
    await server.restart();
    expect(await ask(url, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  } finally {
    await server.stop();
  }
  expect(await isOpen(server.port)).toBe(false);
});

test('a killed Redis comes back on its port', async () => {
  const server = await startRedis({ own: true });
  await server.kill9();
  expect(await isOpen(server.port)).toBe(false);
  await server.restart();
  expect(await isOpen(server.port)).toBe(true);
  await server.stop();
  expect(await isOpen(server.port)).toBe(false);
});

test('servers do not outlive tests that are killed', async () => {
  const code = `
    const { startPostgres, startRedis } = await import(${JSON.stringify(SUPPORT)});
    const [postgres, redis] = await Promise.all([startPostgres({ own: true }), startRedis({ own: true })]);
    console.log(JSON.stringify([postgres.port, redis.port]));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ports: number[] = await new Promise((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(JSON.parse(String(text))));
    child.once('exit', (status) => reject(new Error(`ended with ${status}`)));
  });
  child.kill('SIGKILL');
  await expect.poll(() => Promise.all(ports.map(isOpen))).toEqual([false, false]);
});
