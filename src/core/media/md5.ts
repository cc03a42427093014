import { hash } from 'node:crypto';
import { MD5_CODE } from './md5-code.ts';

/**
 * MD5 of several bodies at once. It was the largest cost of a picture: OpenSSL takes 87 µs for 80 KB, because each of its
 * steps waits for the one before. Sixteen bodies in the lanes of four vectors take 22 µs each, four bodies 70 (native/md5.ts).
 */

const VECTORS = 4;
const LANES_PER_VECTOR = 4;
const LANES = VECTORS * LANES_PER_VECTOR;
const BLOCK_BYTES = 64;

/** Where the compiled loop finds the states, and the blocks of each lane: a turn of all lanes stays in the cache of a core. */
const LAYOUT = { vectors: 0x0400, vectorBytes: 0x0200, lanes: 0x20000, laneBytes: 0x1000 } as const;
const START = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
/** Lanes that are empty take as long as full ones: so many times what OpenSSL takes for one body of their length. */
const LANES_COST = 3;

interface Native {
  md5(blocks: number, vectors: number): void;
  states: Uint32Array[];
  lanes: Buffer[];
}

/** Compiled for the first body: most jobs have none. */
let native: Native | null = null;

function openNative(): Native {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(MD5_CODE, 'base64')));
  const { buffer } = exports.memory as WebAssembly.Memory;
  return {
    md5: exports.md5 as Native['md5'],
    states: Array.from(
      { length: VECTORS },
      (_, vector) =>
        new Uint32Array(
          buffer,
          LAYOUT.vectors + vector * LAYOUT.vectorBytes,
          LANES_PER_VECTOR * START.length,
        ),
    ),
    lanes: Array.from({ length: LANES }, (_, lane) =>
      Buffer.from(buffer, LAYOUT.lanes + lane * LAYOUT.laneBytes, LAYOUT.laneBytes),
    ),
  };
}

/** A body in its lane. */
class Lane {
  readonly index: number;
  readonly body: Uint8Array;
  /** What follows the last whole block: the rest, a bit, zeros, and the length in bits. */
  readonly #end: Buffer;
  readonly #wholeBytes: number;
  #done = 0;

  constructor(body: Uint8Array, index: number) {
    this.index = index;
    this.body = body;
    const rest = body.length % BLOCK_BYTES;
    this.#wholeBytes = body.length - rest;
    this.#end = Buffer.alloc(rest + 9 > BLOCK_BYTES ? 2 * BLOCK_BYTES : BLOCK_BYTES);
    this.#end.set(body.subarray(this.#wholeBytes));
    this.#end[rest] = 0x80;
    this.#end.writeBigUInt64LE(BigInt(body.length) * 8n, this.#end.length - 8);
  }

  get leftBytes(): number {
    return this.#wholeBytes + this.#end.length - this.#done;
  }

  copyNext(bytes: number, to: Buffer): void {
    const fromBody = Math.min(bytes, Math.max(0, this.#wholeBytes - this.#done));
    if (fromBody > 0) to.set(this.body.subarray(this.#done, this.#done + fromBody));
    const endAt = this.#done + fromBody - this.#wholeBytes;
    if (fromBody < bytes) to.set(this.#end.subarray(endAt, endAt + bytes - fromBody), fromBody);
    this.#done += bytes;
  }
}

/** In hex, in the order of the bodies. */
export function md5OfEach(bodies: readonly Uint8Array[]): string[] {
  const digests: string[] = new Array<string>(bodies.length);
  const lanes: (Lane | null)[] = new Array<Lane | null>(LANES).fill(null);
  let next = 0;
  while (true) {
    for (let at = 0; at < LANES && next < bodies.length; at++) {
      if (lanes[at]) continue;
      lanes[at] = new Lane(bodies[next]!, next++);
      reset(at);
    }
    const open = lanes.filter((lane) => lane !== null);
    if (next === bodies.length && !isWorthwhile(open)) {
      for (const { body, index } of open) digests[index] = hash('md5', body, 'hex');
      return digests;
    }
    advance(lanes);
    for (let at = 0; at < LANES; at++) {
      const lane = lanes[at];
      if (!lane || lane.leftBytes > 0) continue;
      digests[lane.index] = digestOf(at);
      lanes[at] = null;
    }
  }
}

/** Whether it takes less time to go on than to begin again with OpenSSL, one after the other. */
function isWorthwhile(open: readonly Lane[]): boolean {
  const longest = open.reduce((bytes, { leftBytes }) => Math.max(bytes, leftBytes), 0);
  const alone = open.reduce((bytes, { body }) => bytes + body.length, 0);
  return longest * LANES_COST < alone;
}

/** All lanes go on together, so by as much as the shortest has left. What is in the others comes to nothing. */
function advance(lanes: readonly (Lane | null)[]): void {
  native ??= openNative();
  let bytes: number = LAYOUT.laneBytes;
  for (const lane of lanes) if (lane) bytes = Math.min(bytes, lane.leftBytes);
  for (let at = 0; at < LANES; at++) lanes[at]?.copyNext(bytes, native.lanes[at]!);
  const last = lanes.findLastIndex((lane) => lane !== null);
  native.md5(bytes / BLOCK_BYTES, Math.floor(last / LANES_PER_VECTOR) + 1);
}

function reset(lane: number): void {
  native ??= openNative();
  const { words, at } = stateOf(native, lane);
  for (let word = 0; word < START.length; word++) words[at + word * LANES_PER_VECTOR] = START[word]!;
}

/** Where the first word of its state is; the next ones are a vector's lanes further each. */
function stateOf({ states }: Native, lane: number): { words: Uint32Array; at: number } {
  return { words: states[Math.floor(lane / LANES_PER_VECTOR)]!, at: lane % LANES_PER_VECTOR };
}

function digestOf(lane: number): string {
  const digest = Buffer.allocUnsafe(16);
  const { words, at } = stateOf(native!, lane);
  for (let word = 0; word < START.length; word++)
    digest.writeUInt32LE(words[at + word * LANES_PER_VECTOR]!, word * 4);
  return digest.toString('hex');
}
