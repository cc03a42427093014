import type { Random } from './random.ts';

/** Numbers at which lengths, counts and signs change their meaning. */
const EDGES = [0, 1, 0x7f, 0x80, 0xff];

type Mutation = (bytes: Buffer, random: Random, dictionary: readonly string[]) => Buffer;

const MUTATIONS: readonly Mutation[] = [
  function flip(bytes, random) {
    const copy = Buffer.from(bytes);
    copy[random.below(copy.length)]! ^= 1 << random.below(8);
    return copy;
  },
  function set(bytes, random) {
    const copy = Buffer.from(bytes);
    copy[random.below(copy.length)] = random.oneIn(2) ? random.pick(EDGES) : random.below(256);
    return copy;
  },
  function cut(bytes, random) {
    return random.oneIn(4)
      ? bytes.subarray(random.below(bytes.length))
      : bytes.subarray(0, random.below(bytes.length));
  },
  function remove(bytes, random) {
    const at = random.below(bytes.length);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(16))]);
  },
  function repeat(bytes, random) {
    const at = random.below(bytes.length);
    const piece = bytes.subarray(at, at + 1 + random.below(32));
    const to = random.below(bytes.length);
    return Buffer.concat([
      bytes.subarray(0, to),
      ...new Array(1 + random.below(4)).fill(piece),
      bytes.subarray(to),
    ]);
  },
  function swap(bytes, random) {
    const [from, to] = [random.below(bytes.length), random.below(bytes.length)].sort((a, b) => a - b) as [
      number,
      number,
    ];
    const middle = from + random.below(to - from + 1);
    return Buffer.concat([
      bytes.subarray(0, from),
      bytes.subarray(middle, to),
      bytes.subarray(from, middle),
      bytes.subarray(to),
    ]);
  },
  function insert(bytes, random, dictionary) {
    const at = random.below(bytes.length + 1);
    const piece =
      dictionary.length > 0 && !random.oneIn(4)
        ? Buffer.from(random.pick(dictionary), 'utf8')
        : Buffer.from(random.list(1, 8, () => random.below(256)));
    return Buffer.concat([bytes.subarray(0, at), piece, bytes.subarray(at)]);
  },
  function overwrite(bytes, random, dictionary) {
    const copy = Buffer.from(bytes);
    const at = random.below(copy.length);
    if (dictionary.length > 0 && random.oneIn(2)) copy.write(random.pick(dictionary), at, 'utf8');
    else copy.fill(random.pick(EDGES), at, Math.min(copy.length, at + 1 + random.below(8)));
    return copy;
  },
];

/** The same bytes after a few changes; `dictionary` has pieces that mean something in this format. */
export function mutate(
  bytes: Buffer,
  random: Random,
  dictionary: readonly string[] = [],
  changesMax = 4,
): Buffer {
  let changed = bytes;
  for (let left = 1 + random.below(changesMax); left > 0; left--)
    changed =
      changed.length === 0
        ? Buffer.from(random.pick(dictionary) ?? 'x')
        : random.pick(MUTATIONS)(changed, random, dictionary);
  return changed;
}
