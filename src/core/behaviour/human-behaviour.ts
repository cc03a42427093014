/**
 * How a person moves a pointer, scrolls and types, as lists of steps: made from a seed, so that a visit can be repeated, and
 * bounded in number and time, whatever the distance or the text.
 */

export interface Point {
  x: number;
  y: number;
}

type MoveStep = Point & { waitMs: number };

const MOVE_STEPS_MAX = 40;
const MOVE_MS_MAX = 1_200;
const SCROLL_STEPS_MAX = 60;
const TYPING_MS_MAX = 10_000;

/** Numbers in [0, 1) that a seed decides: mulberry32. */
export function seededNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Along a curve, slow at both ends and fast between them; the last step is the target itself. */
export function moveSteps(from: Point, to: Point, next: () => number): MoveStep[] {
  const distance = Math.hypot(to.x - from.x, to.y - from.y);
  const count = Math.max(3, Math.min(MOVE_STEPS_MAX, Math.round(8 + distance / 25)));
  const totalMs = Math.min(MOVE_MS_MAX, 150 + distance * (0.6 + 0.4 * next()));
  // The middle of the curve lies beside the straight line, on either side of it.
  const bend = (next() - 0.5) * Math.min(200, distance * 0.5);
  const middle = {
    x: (from.x + to.x) / 2 + (distance === 0 ? 0 : ((to.y - from.y) / distance) * bend),
    y: (from.y + to.y) / 2 - (distance === 0 ? 0 : ((to.x - from.x) / distance) * bend),
  };
  return Array.from({ length: count }, (_, index) => {
    const share = (index + 1) / count;
    const at = share * share * (3 - 2 * share);
    const along = (a: number, b: number, c: number) =>
      (1 - at) ** 2 * a + 2 * (1 - at) * at * b + at ** 2 * c;
    const waitMs = (totalMs / count) * (0.6 + 0.8 * next());
    return { x: along(from.x, middle.x, to.x), y: along(from.y, middle.y, to.y), waitMs };
  });
}

/** Down by so many pixels in turns of the wheel, with a pause to read now and then. */
export function scrollSteps(pixels: number, next: () => number): { pixels: number; waitMs: number }[] {
  const steps: { pixels: number; waitMs: number }[] = [];
  const least = pixels / SCROLL_STEPS_MAX;
  for (let left = pixels; left > 0; ) {
    const step = Math.min(left, Math.max(least, 40 + 100 * next()));
    const reads = next() < 0.1;
    steps.push({ pixels: step, waitMs: reads ? 200 + 300 * next() : 15 + 45 * next() });
    left -= step;
  }
  return steps;
}

/** Before each letter: longer after spaces and full stops, and together never longer than the limit. */
export function typingPauses(text: string, next: () => number): number[] {
  const pauses = [...text].map((_, index, letters) => {
    const before = letters[index - 1] ?? '';
    return (50 + 110 * next()) * (/[\s.,!?]/.test(before) ? 1.8 : 1);
  });
  const total = pauses.reduce((sum, ms) => sum + ms, 0);
  return total <= TYPING_MS_MAX ? pauses : pauses.map((ms) => (ms / total) * TYPING_MS_MAX);
}
