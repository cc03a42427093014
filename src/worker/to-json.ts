import { LIMITS } from '../core/limits.ts';
import { isJsonDeeper } from '../core/values/nesting.ts';

/** JSON of data that a page or a handler made, as `JSON.stringify`; `what` is named when it is nested too deeply. */
export function toJson(data: unknown, what: string): string | undefined {
  try {
    const json = JSON.stringify(data) as string | undefined;
    if (json === undefined || !isJsonDeeper(json, LIMITS.dataNestingMax)) return json;
  } catch (error) {
    // Where the call stack ends, data is far too deep as well.
    if (!(error instanceof RangeError)) throw error;
  }
  throw new Error(`${what} is nested deeper than ${LIMITS.dataNestingMax} levels`);
}
