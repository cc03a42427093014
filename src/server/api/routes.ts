import { alertRoutes } from './alert-routes.ts';
import { eventRoutes } from './jobs/event-routes.ts';
import { exportRoutes } from './jobs/export-routes.ts';
import { forecastRoutes } from './jobs/forecast-routes.ts';
import { jobRoutes } from './jobs/job-routes.ts';
import { rowRoutes } from './jobs/row-routes.ts';
import { seriesRoutes } from './jobs/series-routes.ts';
import { snapshotRoutes } from './jobs/snapshot-routes.ts';
import { taskRoutes } from './jobs/task-routes.ts';
import { keysRoutes } from './keys/keys-routes.ts';
import { pageLimits } from './keys/page-limits.ts';
import { machineRoutes } from './machine-routes.ts';
import type { RoutePlugin } from './requests/access.ts';
import { idempotency } from './requests/idempotency.ts';
import { batchRoutes } from './scrape/batch-routes.ts';
import { scrapeRoutes } from './scrape/scrape-routes.ts';
import { serverRoutes } from './server-routes.ts';
import { storedRoutes } from './stored-routes.ts';
import { webhooksRoutes } from './webhooks-routes.ts';
import { workerRoutes } from './worker-routes.ts';

/** Everything that answers below `/api/v1`. */
export const ROUTES: readonly RoutePlugin[] = [
  idempotency,
  pageLimits,
  scrapeRoutes,
  batchRoutes,
  jobRoutes,
  forecastRoutes,
  rowRoutes,
  seriesRoutes,
  taskRoutes,
  exportRoutes,
  eventRoutes,
  snapshotRoutes,
  storedRoutes,
  machineRoutes,
  workerRoutes,
  alertRoutes,
  serverRoutes,
  keysRoutes,
  webhooksRoutes,
];
