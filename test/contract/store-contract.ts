import fc from 'fast-check';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { testAdopt } from './store/adopt.ts';
import { testAlerts } from './store/alerts.ts';
import { testCosts } from './store/costs.ts';
import { testDueHosts } from './store/due-hosts.ts';
import { testEnqueue } from './store/enqueue.ts';
import { testEscalations } from './store/escalations.ts';
import { testFindings } from './store/findings.ts';
import { testGroups } from './store/groups.ts';
import { testHostFacts } from './store/host-facts.ts';
import { testHostileNames } from './store/hostile-names.ts';
import { testJobs } from './store/jobs.ts';
import { testKeys } from './store/keys.ts';
import { testLease } from './store/lease.ts';
import { testManyJobs } from './store/many-jobs.ts';
import { testMedia } from './store/media.ts';
import { StoreModel } from './store/model.ts';
import { STEP } from './store/model-steps.ts';
import { testOpenJobs } from './store/open-jobs.ts';
import { testParts } from './store/parts.ts';
import { testPasses } from './store/passes.ts';
import { testPiggybackedHosts } from './store/piggybacked-hosts.ts';
import { testPriorities } from './store/priorities.ts';
import { testProxies } from './store/proxies.ts';
import { testQuery } from './store/query.ts';
import { testRecords } from './store/records.ts';
import { testRemovals } from './store/removals.ts';
import { testRequests } from './store/requests.ts';
import { testReturn } from './store/return.ts';
import { testRevisits } from './store/revisits.ts';
import { testRewrite } from './store/rewrite.ts';
import { testRollups } from './store/rollups.ts';
import { testSettle } from './store/settle.ts';
import { testShots } from './store/shots.ts';
import { testSlotTimes } from './store/slot-times.ts';
import { testSteps } from './store/steps.ts';
import { type ForgetStore, type OpenStore, StoreSetup } from './store/store-setup.ts';
import { testViews } from './store/views.ts';
import { testWebhooks } from './store/webhooks.ts';
import { testWorkers } from './store/workers.ts';

/** What every Store must do. */
export function runStoreContract(
  name: string,
  open: OpenStore,
  forget: ForgetStore = async () => {},
  { modelRuns = 30 } = {},
): void {
  describe(`store: ${name}`, () => {
    const setup = new StoreSetup(open, forget);
    beforeEach(() => setup.setUp());
    afterEach(() => setup.tearDown());

    testJobs(setup);
    testOpenJobs(setup);
    testEnqueue(setup);
    testDueHosts(setup);
    testHostFacts(setup);
    testManyJobs(setup);
    testGroups(setup);
    testLease(setup);
    testPiggybackedHosts(setup);
    testPriorities(setup);
    testSlotTimes(setup);
    testSteps(setup);
    testSettle(setup);
    testCosts(setup);
    testParts(setup);
    testRollups(setup);
    testAlerts(setup);
    testWorkers(setup);
    testFindings(setup);
    testReturn(setup);
    testAdopt(setup);
    testViews(setup);
    testPasses(setup);
    testRevisits(setup);
    testRecords(setup);
    testMedia(setup);
    testShots(setup);
    testRewrite(setup);
    testQuery(setup);
    testProxies(setup);
    testKeys(setup);
    testWebhooks(setup);
    testRequests(setup);
    testRemovals(setup);
    testEscalations(setup);
    testHostileNames(setup);

    test('whatever happens in whatever order, every task is where a simple model says', () => {
      let runs = 0;
      return fc.assert(
        fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 45 }), async (steps) => {
          const place = `${setup.place}/model-${runs++}`;
          const model = await StoreModel.start(open, place);
          try {
            for (const step of steps) await model.take(step);
          } finally {
            await model.close();
            await forget(place);
          }
        }),
        { numRuns: modelRuns },
      );
    });
  });
}
