import { messageOf, SeineError } from '../../core/errors.ts';
import { VALUES_PER_FIELD_MAX } from '../page/tree-search.ts';

/** Text that a regular expression of a job looks at: at worst half a second for each million characters. */
export const REGEX_TEXT_MAX = 2_000_000;
/** Characters passed over by one pattern that wants every match, were each to look at all that is left: some seconds. */
const REGEX_STEPS_MAX = 64_000_000;

/** A pattern whose time grows with the text and not with what a page has put into it. It sees the text up to a limit. */
export interface LinearRegex {
  test(text: string): boolean;
  /** The first group of the first match, or the match when there is no group; null without a match. */
  first(text: string): string | null;
  /** The same of every match, in order. */
  all(text: string): string[];
}

/** The engine is loaded by the first job that needs it. */
export async function compileRegex(pattern: string): Promise<LinearRegex> {
  const compile = await loadRegexCompiler();
  return compile(pattern);
}

/** For callers that compile patterns synchronously. RE2 syntax: no look-around and no back-references. */
export async function loadRegexCompiler(): Promise<(pattern: string) => LinearRegex> {
  const { RE2JS } = await import('re2js');
  return (pattern) => linearRegex(RE2JS, pattern);
}

function linearRegex(RE2JS: typeof import('re2js').RE2JS, pattern: string): LinearRegex {
  let regex: InstanceType<typeof RE2JS>;
  try {
    regex = RE2JS.compile(pattern);
  } catch (error) {
    const reason = messageOf(error).replace(/^error parsing regexp: /, '');
    throw new SeineError(`not a regular expression that runs in linear time: ${pattern} (${reason})`, {
      cause: error,
    });
  }
  const group = regex.groupCount() > 0 ? 1 : 0;
  return {
    test: (text) => regex.test(bounded(text)),
    first(text) {
      const matcher = regex.matcher(bounded(text));
      return matcher.find() ? matcher.group(group) : null;
    },
    all(whole) {
      const text = bounded(whole);
      const found: string[] = [];
      const matcher = regex.matcher(text);
      let steps = text.length;
      while (matcher.find()) {
        const value = matcher.group(group);
        if (value !== null) found.push(value);
        // One search is linear. Many may each look through all that is left, so they are counted as if they did.
        steps += text.length - matcher.end();
        if (steps > REGEX_STEPS_MAX || found.length > VALUES_PER_FIELD_MAX) {
          throw new Error(`the pattern ${pattern} matches too often in ${text.length} characters`);
        }
      }
      return found;
    },
  };
}

function bounded(text: string): string {
  return text.length > REGEX_TEXT_MAX ? text.slice(0, REGEX_TEXT_MAX) : text;
}
