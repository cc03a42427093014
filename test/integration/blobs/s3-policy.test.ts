import { afterAll, beforeAll, expect, test } from 'vitest';
import { openS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import { policyOf, type Wanted } from '../../../src/cli/lambda/deploy-plan.ts';
import { collect } from '../../support/fixtures.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

/** A function with the role that `seine lambda deploy` gives it, at an S3 server that goes by that role. */

interface Statement {
  Effect: 'Allow' | 'Deny';
  Action: string | string[];
  Resource: string | string[];
  Condition?: { StringLike: { 's3:prefix': string } };
}

const wanted = { name: 'seine', region: 'eu-west-1', blobs: 's3://seine-test/crawl' } as Wanted;
const statements = policyOf(wanted).Statement as Statement[];

const fits = (pattern: string, text: string) =>
  new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`).test(text);

function isAllowed(action: string, resource: string, prefix: string | null): boolean {
  const meant = statements.filter(({ Action, Resource, Condition }) => {
    const like = Condition?.StringLike['s3:prefix'];
    return (
      [Action].flat().includes(action) &&
      [Resource].flat().some((pattern) => fits(pattern, resource)) &&
      // A condition about something that the request does not have is not met.
      (like === undefined || (prefix !== null && fits(like, prefix)))
    );
  });
  return meant.length > 0 && meant.every(({ Effect }) => Effect === 'Allow');
}

let server: S3Server;
let isGuarded = false;
beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  server = await startS3Server({ isAllowed: (...request) => !isGuarded || isAllowed(...request) });
});
afterAll(() => server.close());

test('the role of a function is enough for its work, and for nothing else', async () => {
  const settings = { endpoint: server.endpoint, region: null, pathStyle: null };
  const open = (place: string) => openS3Blobs(`s3://${server.bucket}/${place}`, settings);
  const blobs = open('crawl');
  const others = open('other');
  await blobs.put('bundles/a.mjs', Buffer.from('code'));
  await others.put('page', Buffer.from('of others'));
  isGuarded = true;

  expect((await blobs.read('bundles/a.mjs'))?.toString()).toBe('code');
  expect([await blobs.read('missing'), await blobs.has('missing'), await blobs.has('missi')]).toEqual([
    null,
    false,
    false,
  ]);
  await blobs.put('media/a', Buffer.from('x'));
  const mark = server.log.length;
  expect([await blobs.has('media/a'), await blobs.has('media')]).toEqual([true, false]);
  // Once it is known that absence is hidden, each question is one request.
  expect(server.log.slice(mark)).toHaveLength(2);
  const writer = await blobs.write('archive/large');
  await writer.append(Buffer.alloc(6 * 1024 * 1024));
  await writer.commit();
  expect(await blobs.read('archive/large')).toHaveLength(6 * 1024 * 1024);
  expect((await server.keys()).filter((key) => key.includes('.tmp'))).toEqual([]);
  const given = await blobs.write('archive/given-up');
  await given.append(Buffer.alloc(6 * 1024 * 1024));
  await given.abort();
  expect(await server.uploads()).toEqual([]);

  const denied = /^access to the bucket seine-test at .* is denied$/;
  await expect(blobs.put('bundles/a.mjs', Buffer.from('other code'))).rejects.toThrow(denied);
  await expect(blobs.put('bundles/b.mjs', Buffer.from('other code'))).rejects.toThrow(denied);
  await expect(blobs.delete('bundles/a.mjs')).rejects.toThrow(denied);
  await expect(blobs.delete('archive/large')).rejects.toThrow(denied);
  await expect(others.read('page')).rejects.toThrow(denied);
  await expect(others.has('page')).rejects.toThrow(denied);
  await expect(others.put('page', Buffer.from('x'))).rejects.toThrow(denied);
  await expect(collect(others.list(''))).rejects.toThrow(denied);
  await expect(collect(open('').list(''))).rejects.toThrow(denied);
});
