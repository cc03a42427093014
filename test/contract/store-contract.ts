import fc from 'fast-check';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { testHostileNames } from './store/hostile-names.ts';
import { testDueHosts } from './store/hosts/due-hosts.ts';
import { testGroups } from './store/hosts/groups.ts';
import { testHostFacts } from './store/hosts/host-facts.ts';
import { testPiggybackedHosts } from './store/hosts/piggybacked-hosts.ts';
import { testProxies } from './store/hosts/proxies.ts';
import { testCosts } from './store/jobs/costs.ts';
import { testJobs } from './store/jobs/jobs.ts';
import { testManyJobs } from './store/jobs/many-jobs.ts';
import { testOpenJobs } from './store/jobs/open-jobs.ts';
import { testRemovals } from './store/jobs/removals.ts';
import { testRollups } from './store/jobs/rollups.ts';
import { testSlotTimes } from './store/jobs/slot-times.ts';
import { StoreModel } from './store/model/model.ts';
import { STEP } from './store/model/model-steps.ts';
import { testMedia } from './store/records/media.ts';
import { testQuery } from './store/records/query.ts';
import { testRecords } from './store/records/records.ts';
import { testRewrite } from './store/records/rewrite.ts';
import { testShots } from './store/records/shots.ts';
import { testViews } from './store/records/views.ts';
import { testAlerts } from './store/server/alerts.ts';
import { testKeys } from './store/server/keys.ts';
import { testRequests } from './store/server/requests.ts';
import { testWebhooks } from './store/server/webhooks.ts';
import { testWorkers } from './store/server/workers.ts';
import { type ForgetStore, type OpenStore, StoreSetup } from './store/store-setup.ts';
import { testAdopt } from './store/tasks/adopt.ts';
import { testEnqueue } from './store/tasks/enqueue.ts';
import { testEscalations } from './store/tasks/escalations.ts';
import { testFindings } from './store/tasks/findings.ts';
import { testLease } from './store/tasks/lease.ts';
import { testParts } from './store/tasks/parts.ts';
import { testPasses } from './store/tasks/passes.ts';
import { testPriorities } from './store/tasks/priorities.ts';
import { testReturn } from './store/tasks/return.ts';
import { testRevisits } from './store/tasks/revisits.ts';
import { testSettle } from './store/tasks/settle.ts';
import { testSteps } from './store/tasks/steps.ts';

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
