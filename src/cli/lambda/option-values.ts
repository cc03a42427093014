import { WORKER_KINDS, type WorkerKind } from '../../core/batch/batch.ts';
import { SeineError } from '../../core/errors.ts';
import { type Context, withFolder } from '../context.ts';

/** Options of `seine lambda`, checked. */

export function numberOption(
  context: Context,
  name: string,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  const text = context.parsed.values[name];
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new SeineError(`--${name} must be a number from ${min} to ${max}, got '${text}'`);
}

export function kindOption({ parsed }: Context): WorkerKind {
  const { kind: text = 'http' } = parsed.values;
  const kind = WORKER_KINDS.find((each) => each === text);
  if (kind) return kind;
  throw new SeineError(`invalid value for --kind: '${text}'`, {
    hint: `use one of ${WORKER_KINDS.join(', ')}`,
  });
}

/** What a function gets where the command does not say it: Chromium needs room, also on the disk. */
export const SIZES = {
  http: { name: 'seine', memoryMb: 1_024, tmpMb: 512 },
  browser: { name: 'seine-browser', memoryMb: 2_048, tmpMb: 2_048 },
} as const;

/** Of the API: letters, digits, hyphens and underscores. */
export function functionName(context: Context): string {
  const name = context.parsed.values.name ?? SIZES[kindOption(context)].name;
  if (/^[\w-]{1,64}$/.test(name)) return name;
  throw new SeineError(`'${name}' is not a valid function name`, {
    hint: 'use up to 64 letters, digits, - and _',
  });
}

export async function sizeOptions(context: Context): Promise<{ memoryMb: number; timeoutSeconds: number }> {
  const { memoryMb } = SIZES[kindOption(context)];
  const isAuto = context.parsed.values.timeout === 'auto';
  return {
    memoryMb: numberOption(context, 'memory', { min: 128, max: 10_240, otherwise: memoryMb }),
    timeoutSeconds: isAuto
      ? await calibratedTimeout(context)
      : numberOption(context, 'timeout', { min: 1, max: SECONDS_MAX, otherwise: 120 }),
  };
}

const SECONDS_MAX = 900;
/** A function has to start, and to send its report. */
const SECONDS_MIN = 10;
const PROFILES_MAX = 500;

/** What the slowest of the calibrated hosts needs for a batch. */
async function calibratedTimeout(context: Context): Promise<number> {
  const profiles = await withFolder(context, ({ store }) => store.hosts.profiles(PROFILES_MAX));
  const needed = profiles
    .filter(({ expiresAt }) => expiresAt > Date.now())
    .map(({ batchTimeoutMs }) => batchTimeoutMs ?? 0);
  const longestMs = Math.max(0, ...needed);
  if (longestMs === 0)
    throw new SeineError('--timeout auto needs a host that was calibrated within the last 14 days', {
      hint: 'run `seine calibrate` with the hosts of your jobs first, or give the timeout in seconds',
    });
  return Math.min(SECONDS_MAX, Math.max(SECONDS_MIN, Math.ceil(longestMs / 1_000)));
}

/** `--env NAME=value`; the value is never shown. */
export function variableOptions(context: Context): Record<string, string> {
  return Object.fromEntries(
    (context.parsed.lists.env ?? []).map((pair) => {
      const [, name, value] = /^([A-Za-z]\w*)=([\s\S]*)$/.exec(pair) ?? [];
      if (name === undefined) throw new SeineError('--env needs NAME=value');
      return [name, value!];
    }),
  );
}
