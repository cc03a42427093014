import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { connect } from '../../client/client.ts';
import type { RoutePlugin } from '../api/requests/access.ts';
import { createMcpHandler } from './mcp-sdk.ts';
import { makeMcpServer } from './tools.ts';

/** From where the caller is connected; what a client sends under this name is replaced. */
const REMOTE = 'x-seine-remote-address';
/** Of whoever calls a tool: its calls of the API have the same rights. */
const PASSED_ON = ['authorization', 'x-api-key', 'host', 'origin', 'sec-fetch-site'] as const;

/** `/mcp`: the tools of `seine mcp` over HTTP, for clients of the newest protocol and of older ones. Nothing is kept between calls. */
export const mcpRoutes: RoutePlugin = (app, { logger }) => {
  const handler = createMcpHandler(
    ({ requestInfo }) =>
      makeMcpServer(() => connect({ url: 'http://seine', fetch: callerOf(app, requestInfo) })),
    { onerror: (error) => logger.warn(`a call of a tool failed: ${error.message}`) },
  );
  app.addHook('onClose', () => handler.close());
  for (const method of ['GET', 'POST', 'DELETE'] as const)
    app.route({
      method,
      url: '/mcp',
      ...(method === 'GET' ? { exposeHeadRoute: false } : {}),
      handler: async (request, reply) => {
        const asked = webRequest(request, reply);
        const answer = await handler.fetch(asked, { parsedBody: request.body });
        return send(reply, answer);
      },
    });
};

function webRequest({ method, url, headers, body, ip }: FastifyRequest, reply: FastifyReply): Request {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  const given = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const each of [value ?? []].flat()) given.append(name, each);
  given.delete('content-length');
  given.set(REMOTE, ip);
  const sent = method === 'POST' ? { body: JSON.stringify(body ?? null) } : {};
  return new Request(new URL(url, 'http://seine'), { method, headers: given, signal: gone.signal, ...sent });
}

function send(reply: FastifyReply, answer: Response): FastifyReply {
  reply.code(answer.status).headers(Object.fromEntries(answer.headers));
  return answer.body === null
    ? reply.send()
    : reply.send(Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]));
}

/** Calls the API of this server without a connection, as the caller of the tool. */
function callerOf(app: FastifyInstance, asked: Request | undefined): typeof fetch {
  const passedOn = Object.fromEntries(
    PASSED_ON.flatMap((name) => {
      const value = asked?.headers.get(name);
      return value == null ? [] : [[name, value]];
    }),
  );
  return async (url, init = {}) => {
    const answer = await app.inject({
      method: (init.method ?? 'GET') as 'GET',
      url: String(url).replace('http://seine', ''),
      headers: { ...(init.headers as Record<string, string>), ...passedOn },
      ...(init.body == null ? {} : { payload: String(init.body) }),
      remoteAddress: asked?.headers.get(REMOTE) ?? '',
    });
    const headers = Object.entries(answer.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    return new Response(answer.statusCode === 204 ? null : answer.body, {
      status: answer.statusCode,
      headers,
    });
  };
}
