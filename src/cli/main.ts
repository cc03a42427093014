import { type Handlers, runCommandLine } from './command-line.ts';
import type { Output } from './context.ts';

/** Each command loads only what it needs: `seine status` should not wait for the parts of a crawler. */
const HANDLERS: Handlers = {
  init: async () => (await import('./commands/setup/init.ts')).initCommand,
  try: async () => (await import('./commands/pages/try.ts')).tryCommand,
  run: async () => (await import('./commands/run/run.ts')).runCommand,
  forecast: async () => (await import('./commands/run/forecast.ts')).forecastCommand,
  resume: async () => (await import('./commands/run/run.ts')).resumeCommand,
  refresh: async () => (await import('./commands/run/refresh.ts')).refreshCommand,
  ui: async () => (await import('./commands/server/ui.ts')).uiCommand,
  serve: async () => (await import('./commands/server/serve.ts')).serveCommand,
  worker: async () => (await import('./commands/fleet/worker.ts')).workerCommand,
  drain: async () => (await import('./commands/fleet/drain.ts')).drainCommand,
  workers: async () => (await import('./commands/fleet/workers.ts')).workersCommand,
  'fleet-key': async () => (await import('./commands/fleet/fleet-key.ts')).fleetKeyCommand,
  keys: async () => (await import('./commands/server/keys.ts')).keysCommand,
  mcp: async () => (await import('./commands/server/mcp.ts')).mcpCommand,
  lambda: async () => (await import('./lambda/lambda.ts')).lambdaCommand,
  status: async () => (await import('./commands/jobs/reports.ts')).statusCommand,
  explain: async () => (await import('./commands/jobs/explain.ts')).explainCommand,
  receipt: async () => (await import('./commands/jobs/receipt.ts')).receiptCommand,
  top: async () => (await import('./commands/run/top.ts')).topCommand,
  hosts: async () => (await import('./commands/jobs/hosts.ts')).hostsCommand,
  calibrate: async () => (await import('./commands/run/calibrate.ts')).calibrateCommand,
  verify: async () => (await import('./export/verify.ts')).verifyCommand,
  proxies: async () => (await import('./commands/jobs/proxies.ts')).proxiesCommand,
  jobs: async () => (await import('./commands/jobs/reports.ts')).jobsCommand,
  stop: async () => (await import('./commands/jobs/reports.ts')).stopCommand,
  cancel: async () => (await import('./commands/jobs/reports.ts')).cancelCommand,
  add: async () => (await import('./commands/run/add.ts')).addCommand,
  priority: async () => (await import('./commands/jobs/priority.ts')).priorityCommand,
  dead: async () => (await import('./commands/jobs/reports.ts')).deadCommand,
  export: async () => (await import('./export/export.ts')).exportCommand,
  reparse: async () => (await import('./commands/pages/reparse.ts')).reparseCommand,
  learn: async () => (await import('./commands/pages/learn.ts')).learnCommand,
  repair: async () => (await import('./commands/pages/repair.ts')).repairCommand,
  test: async () => (await import('./commands/pages/test.ts')).testCommand,
  sheet: async () => (await import('./commands/pages/sheet.ts')).sheetCommand,
  page: async () => (await import('./commands/pages/page.ts')).pageCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  hostile: async () => (await import('./commands/setup/hostile.ts')).hostileCommand,
  shop: async () => (await import('./commands/setup/shop.ts')).shopCommand,
  browser: async () => (await import('./commands/setup/browser.ts')).browserCommand,
  schema: async () => (await import('./commands/setup/schema.ts')).schemaCommand,
  completion: async () => (await import('./commands/setup/completion.ts')).completionCommand,
};

/** Runs one command line and returns its exit code. */
export function main(argv: readonly string[], output: Output = process): Promise<number> {
  return runCommandLine(argv, HANDLERS, output);
}
