import { hash } from 'node:crypto';
import { MD5_CODE } from './md5-code.ts';

/**
 * MD5 of several bodies at once. It is the largest cost of a picture: OpenSSL takes 105 µs for 80 KB, because each of its
 * steps waits for the one before. Four bodies in the lanes of a vector take 40 µs each (native/md5.ts).
 */

const LANES = 4;
const BLOCK_BYTES = 64;

/** Where the compiled loop finds the states, and the blocks of each lane: together they stay in the cache of a core. */
const LAYOUT = { state: 0x0400, lane: 0x1000, laneBytes: 0x4000 } as const;
const START = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476];
/** A vector that is not full takes as long as a full one: so many times what OpenSSL takes for one body of its length. */
const VECTOR_COST = 1.5;

interface Native {
  md5(blocks: number): void;
  states: Uint32Array;
  lanes: Buffer[];
}

/** Compiled for the first body: most jobs have none. */
let native: Native | null = null;

function openNative(): Native {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(MD5_CODE, 'base64')));
  const { buffer } = exports.memory as WebAssembly.Memory;
  return {
    md5: exports.md5 as Native['md5'],
    states: new Uint32Array(buffer, LAYOUT.state, LANES * START.length),
    lanes: Array.from({ length: LANES }, (_, lane) =>
      Buffer.from(buffer, LAYOUT.lane + lane * LAYOUT.laneBytes, LAYOUT.laneBytes),
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
  return longest * VECTOR_COST < alone;
}

/** All lanes go on together, so by as much as the shortest has left. What is in the others comes to nothing. */
function advance(lanes: readonly (Lane | null)[]): void {
  native ??= openNative();
  let bytes: number = LAYOUT.laneBytes;
  for (const lane of lanes) if (lane) bytes = Math.min(bytes, lane.leftBytes);
  for (let at = 0; at < LANES; at++) lanes[at]?.copyNext(bytes, native.lanes[at]!);
  native.md5(bytes / BLOCK_BYTES);
}

function reset(lane: number): void {
  native ??= openNative();
  for (let word = 0; word < START.length; word++) native.states[word * LANES + lane] = START[word]!;
}

function digestOf(lane: number): string {
  const digest = Buffer.allocUnsafe(16);
  for (let word = 0; word < START.length; word++)
    digest.writeUInt32LE(native!.states[word * LANES + lane]!, word * 4);
  return digest.toString('hex');
}
