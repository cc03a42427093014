import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { describeApi, docsPage, exampleOf, OPERATIONS } from '../../../src/server/api/openapi.ts';
import { PROBLEMS } from '../../../src/server/api/requests/problems.ts';
import { openApiServer } from '../../support/servers/api-server.ts';

test('the description is valid OpenAPI, by a validator that is not ours', async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(describeApi())));
  expect(errors ?? []).toEqual([]);
  expect(valid).toBe(true);
});

test('every call with a body has an example with one', () => {
  for (const { path, body, ...operation } of OPERATIONS) {
    const isSent = exampleOf({ path, ...operation }).includes(" -d '");
    expect([path, isSent]).toEqual([path, body !== undefined]);
  }
});

test('every call that is described answers, and the page names each of them and every code', async () => {
  const server = await openApiServer();
  try {
    for (const { method, path, answers } of OPERATIONS) {
      // A stream would never end.
      const asked = answers === 'text/event-stream' ? '?job=job_1' : '';
      const url = `${server.url}/api/v1${path.replace('{id}', 'job_1').replace('{delivery}', '1')}${asked}`;
      const sent =
        method === 'get' || method === 'delete'
          ? {}
          : { body: '{"x":1}', headers: { 'content-type': 'application/json' } };
      const answer = await fetch(url, { method: method.toUpperCase(), ...sent });
      const body = answer.status === 204 ? {} : ((await answer.json()) as { code?: string; detail?: string });
      // There is no such job, and no such field; but there is such a call.
      const isKnown = answer.ok || body.code === 'bad-option' || /^no such/.test(body.detail ?? '');
      expect([method, path, isKnown]).toEqual([method, path, true]);
    }
    const described = await fetch(`${server.url}/openapi.json`);
    expect(await described.json()).toEqual(JSON.parse(JSON.stringify(describeApi())));
    const page = await fetch(`${server.url}/docs`);
    expect(page.headers.get('content-security-policy')).toBe("default-src 'none'");
    const text = await page.text();
    expect(text).toBe(docsPage());
    for (const code of Object.keys(PROBLEMS)) expect(text).toContain(`id="${code}"`);
    for (const { path } of OPERATIONS) expect(text).toContain(`/api/v1${path}`);
    expect(text).not.toMatch(/<script|src=|https?:\/\//);
  } finally {
    await server.close();
  }
});
