// What `import 'seine'` loads. Plain JavaScript that an old Node can read, so that it gets a sentence and not a missing module.
import { checkNode, hushWarnings } from './check-node.js';

const problem = checkNode();
if (problem) throw new Error(problem);
const restore = hushWarnings();
export const { defineJob, EXIT_CODES, FAILURES, openSeine, SeineError, SKIPS } = await import(
  '../dist/index.js'
).finally(restore);
