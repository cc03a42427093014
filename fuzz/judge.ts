import type { Target } from './target.ts';

/** CPU time that an input may take, alone. Real ones take a thousandth of it. */
const CPU_MS_MAX = 2_000;
/** By how much the process may grow over one input. */
const GROWTH_BYTES_MAX = 512 * 1024 * 1024;

/** What is wrong with how an input is handled; null for nothing. */
export async function judge(target: Target, input: Buffer): Promise<string | null> {
  const cpuBefore = cpuMs();
  const rssBefore = process.memoryUsage.rss();
  try {
    await target.check(input);
  } catch (error) {
    return describe(error);
  }
  // Prototypes are shared by all that follows.
  for (const key in {}) return `Object.prototype has ${JSON.stringify(key)} now`;
  const cpu = cpuMs() - cpuBefore;
  if (cpu > CPU_MS_MAX) return `it takes too long: ${Math.round(cpu)} ms of CPU time`;
  const growth = process.memoryUsage.rss() - rssBefore;
  if (growth > GROWTH_BYTES_MAX) return `it takes too much memory: ${Math.round(growth / 2 ** 20)} MB`;
  return null;
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const place =
    error.name === 'Finding'
      ? ''
      : ` (${
          error.stack
            ?.split('\n')
            .find((line) => line.includes('/src/'))
            ?.trim() ?? 'no place'
        })`;
  return `${error.name}: ${error.message}${place}`;
}

/** The part of a verdict that stays the same while an input shrinks: minimising must not wander to another defect. */
export function kindOf(verdict: string): string {
  const [first = '', second = ''] = verdict.split(':');
  // What was found says what it is about before its next colon.
  const about = first === 'Finding' ? `${first}:${second}` : first;
  return about.replace(/\d+/g, '0').slice(0, 60);
}
