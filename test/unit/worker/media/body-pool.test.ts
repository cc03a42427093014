import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { BodyBuffer } from '../../../../src/fetch/body/body-buffer.ts';
import { BodyPool } from '../../../../src/worker/media/body-pool.ts';

describe('a pool of blocks', () => {
  test('gives a block again once it was given back, also by a view of it', () => {
    const pool = new BodyPool();
    const first = pool.take(80_000);
    expect(first.length).toBeGreaterThanOrEqual(80_000);
    pool.giveBack(first.subarray(0, 70_000));
    expect(pool.take(100_000).buffer).toBe(first.buffer);
  });

  test('never lends a block twice, however often it is given back', () => {
    const pool = new BodyPool();
    const first = pool.take(80_000);
    pool.giveBack(first);
    pool.giveBack(first);
    const blocks = [pool.take(80_000), pool.take(80_000), pool.take(80_000)];
    expect(new Set(blocks.map(({ buffer }) => buffer)).size).toBe(3);
  });

  test('takes nothing that it has not lent', () => {
    const pool = new BodyPool();
    const foreign = Buffer.allocUnsafeSlow(131_072);
    pool.giveBack(foreign);
    expect(pool.take(131_072).buffer).not.toBe(foreign.buffer);
  });

  test('keeps a few megabytes for later, and no huge block', () => {
    const pool = new BodyPool();
    const blocks = Array.from({ length: 100 }, () => pool.take(262_144));
    for (const block of blocks) pool.giveBack(block);
    const again = Array.from({ length: 100 }, () => pool.take(262_144));
    const known = new Set(blocks.map(({ buffer }) => buffer));
    expect(again.filter(({ buffer }) => known.has(buffer)).length).toBe(32);
    const huge = pool.take(3_000_000);
    expect(huge.length).toBe(3_000_000);
    pool.giveBack(huge);
    expect(pool.take(3_000_000).buffer).not.toBe(huge.buffer);
  });
});

describe('a body gathered in a pool', () => {
  const gather = (pool: BodyPool, body: Buffer, pieceBytes: number, expected = body.length): Buffer => {
    const buffer = new BodyBuffer(pool);
    buffer.expect(expected);
    for (let at = 0; at < body.length; at += pieceBytes) buffer.add(body.subarray(at, at + pieceBytes));
    return buffer.take();
  };

  test('is the same bytes, whatever its block held before', () => {
    const pool = new BodyPool();
    const blocks = new Set<ArrayBufferLike>();
    for (const bytes of [200_000, 90_000, 190_000, 66_000, 130_000, 700_000, 150_000]) {
      const body = randomBytes(bytes);
      const gathered = gather(pool, body, 60_000);
      expect(gathered.equals(body)).toBe(true);
      blocks.add(gathered.buffer);
      pool.giveBack(gathered);
    }
    // 256, 128 and 1,024 KB: each size had one block, which went from body to body.
    expect(blocks.size).toBe(3);
  });

  test('gives back the blocks that became too small, and only those', () => {
    const pool = new BodyPool();
    const body = randomBytes(900_000);
    // Nothing says how long it is, so that it grows step by step.
    const gathered = gather(pool, body, 20_000, -1);
    expect(gathered.equals(body)).toBe(true);
    const lent = [pool.take(40_000), pool.take(100_000), pool.take(200_000), pool.take(400_000)];
    for (const block of lent) block.fill(0);
    expect(gathered.equals(body)).toBe(true);
  });

  test('of one piece stays where it came', () => {
    const pool = new BodyPool();
    const piece = randomBytes(50_000);
    expect(gather(pool, piece, 50_000).buffer).toBe(piece.buffer);
    pool.giveBack(piece);
    expect(pool.take(50_000).buffer).not.toBe(piece.buffer);
  });
});
