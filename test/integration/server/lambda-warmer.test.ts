import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadLambda } from '../../../src/aws/lambda/lambda-client.ts';
import { LambdaWarmer } from '../../../src/server/lambda-warmer.ts';
import { warmFunction } from '../../../src/transport/lambda/warm-function.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { type LambdaSetup, openLambdaSetup } from '../../support/fleet/lambda-setup.ts';

const COUNT = 2;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let setup: LambdaSetup;

beforeAll(async () => {
  folder = await temporaryFolder();
  setup = await openLambdaSetup(folder.dir, { concurrency: COUNT });
});
afterAll(async () => {
  await setup.close();
  await folder.remove();
});

test('environments are started shortly before a scheduled run, once for each, and a failure is only said', async () => {
  const said: string[] = [];
  const say = (text: string) => void said.push(text);
  const { url: endpoint, credentialsFile: credentials } = setup.emulator;
  const place = { endpoint, region: null, credentials };
  const open = (name: string) =>
    new LambdaWarmer({
      dispatch: [{ kind: 'lambda', name, weight: 1 }],
      lambda: { ...place, concurrency: COUNT, browserFunction: null },
      logger: { info: say, warn: say, error: say },
    });
  const warmer = open('seine');
  const dueAt = 1_000_000;
  warmer.look('shop', dueAt, dueAt - 60_000);
  await warmer.close();
  expect(said).toEqual([]);
  for (const before of [20_000, 10_000]) warmer.look('shop', dueAt, dueAt - before);
  await warmer.close();
  expect(said).toEqual([`${COUNT} environments of seine are warm for the next scheduled run`]);
  const lambda = await loadLambda(place, { sockets: COUNT });
  expect(await warmFunction(lambda, 'seine', place, COUNT)).toEqual({ warm: COUNT, made: 0, refused: 0 });
  lambda.client.destroy();

  const wrong = open('missing');
  wrong.look('shop', dueAt, dueAt);
  await wrong.close();
  expect(said.at(-1)).toMatch(/^cannot warm up missing before a scheduled run: /);
});
