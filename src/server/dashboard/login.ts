import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { isSameOrigin, KEY_COOKIE } from '../api/keys/local-access.ts';
import type { AccessControl } from '../api/requests/access.ts';
import { parseAs } from '../api/requests/options.ts';
import { Problem } from '../api/requests/problems.ts';

const BODY = z.strictObject({ key: z.string().min(1).max(200) });
const KEPT_SECONDS = 7 * 86_400;

/** A key that a person types is kept by the browser, where no script can read it and no other site can send it. */
export function addLogin(app: FastifyInstance, access: AccessControl): void {
  app.post('/login', async (request, reply) => {
    if (!isSameOrigin(request.headers)) throw new Problem('foreign-origin');
    const { key } = parseAs(BODY, request.body);
    const caller = await access.authenticate({ 'x-api-key': key }, '');
    if (!caller) throw new Problem('unauthorized', 'the key is wrong, or was revoked');
    return reply
      .header('set-cookie', cookieOf(request, encodeURIComponent(key), KEPT_SECONDS))
      .send({ key_id: caller.keyId, scopes: [...caller.scopes] });
  });

  app.post('/logout', async (request, reply) => {
    if (!isSameOrigin(request.headers)) throw new Problem('foreign-origin');
    return reply
      .header('set-cookie', cookieOf(request, '', 0))
      .code(204)
      .send();
  });
}

/** Behind a proxy that speaks TLS, it is not sent without. */
function cookieOf({ headers }: FastifyRequest, value: string, seconds: number): string {
  const secure = headers['x-forwarded-proto'] === 'https' ? '; Secure' : '';
  return `${KEY_COOKIE}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}
