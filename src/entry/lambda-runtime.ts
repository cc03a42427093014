import { request } from 'node:http';
import { pathToFileURL } from 'node:url';
import { lambdaRuntimeOf } from '../config/lambda-runtime.ts';
import { messageOf } from '../core/errors.ts';
import type { handler as Handler } from './lambda.ts';

/**
 * The loop of an environment: asks Lambda's runtime interface for an event, has the handler work on it, answers.
 * In zip functions Lambda has its own; container images and `seine lambda local` use this one.
 * Arguments: the module of the handler; by default the one beside this file.
 */

interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: string;
}

const base = `http://${lambdaRuntimeOf().api}/2018-06-01/runtime`;

/** Without a limit of time: the next event may come in an hour. */
function ask(method: string, path: string, body = ''): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request(`${base}${path}`, { method }, (reply) => {
    const chunks: Buffer[] = [];
    reply.on('data', (chunk: Buffer) => chunks.push(chunk));
    reply.on('error', reject);
    reply.on('end', () =>
      resolve({
        status: reply.statusCode ?? 0,
        headers: reply.headers,
        body: Buffer.concat(chunks).toString(),
      }),
    );
  });
  sent.on('error', reject);
  sent.end(body);
  return promise;
}

function describe(error: unknown, fallback: string): string {
  const errorType = error instanceof Error ? error.name : fallback;
  return JSON.stringify({ errorType, errorMessage: messageOf(error), trace: [] });
}

async function loadHandler(): Promise<typeof Handler> {
  const [, , path] = process.argv;
  const module = path === undefined ? await import('./lambda.ts') : await import(pathToFileURL(path).href);
  if (typeof module.handler !== 'function') throw new Error(`${path} exports no handler`);
  return module.handler;
}

async function serveOne(handle: typeof Handler): Promise<void> {
  const { headers, body } = await ask('GET', '/invocation/next');
  const id = String(headers['lambda-runtime-aws-request-id']);
  const deadline = Number(headers['lambda-runtime-deadline-ms']);
  const context = { awsRequestId: id, getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()) };
  let answer: string;
  try {
    answer = JSON.stringify(await handle(JSON.parse(body), context));
  } catch (error) {
    await ask('POST', `/invocation/${id}/error`, describe(error, 'Error'));
    return;
  }
  await ask('POST', `/invocation/${id}/response`, answer);
}

let handle: typeof Handler;
try {
  handle = await loadHandler();
} catch (error) {
  await ask(
    'POST',
    '/init/error',
    JSON.stringify({ errorType: 'Runtime.ImportModuleError', errorMessage: messageOf(error) }),
  );
  process.exit(1);
}
try {
  while (true) await serveOne(handle);
} catch {
  // Whoever gave the events is gone.
  process.exit(0);
}
