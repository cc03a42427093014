import { randomBytes, randomFillSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Blobs } from '../../src/ports/blobs.ts';

/** What every Blobs adapter must do. `open` gives an empty one each time. */
export function runBlobsContract(name: string, open: () => Promise<Blobs>): void {
  describe(`blobs: ${name}`, () => {
    let blobs: Blobs;
    beforeEach(async () => {
      blobs = await open();
    });
    afterEach(() => blobs.close());

    const keys = async (prefix: string) => {
      const found: string[] = [];
      for await (const entry of blobs.list(prefix)) found.push(entry.key);
      return found.sort();
    };
    const text = async (key: string) => (await blobs.read(key))?.toString() ?? null;

    test('put, then read', async () => {
      const bytes = randomBytes(100_000);
      await blobs.put('a/b/c.bin', bytes);
      expect((await blobs.read('a/b/c.bin'))?.equals(bytes)).toBe(true);
    });

    test('an empty blob is a blob', async () => {
      await blobs.put('empty', Buffer.alloc(0));
      expect(await blobs.read('empty')).toHaveLength(0);
      expect(await blobs.read('empty', { offset: 0, length: 10 })).toHaveLength(0);
      expect(await keys('')).toEqual(['empty']);
    });

    test('what is not there reads as null, also below or above what is', async () => {
      await blobs.put('a/b', Buffer.from('x'));
      expect(await blobs.read('nothing')).toBeNull();
      expect(await blobs.read('a')).toBeNull();
      expect(await blobs.read('a/b/c')).toBeNull();
      expect(await blobs.read('nothing', { offset: 5, length: 5 })).toBeNull();
    });

    test('has tells what is there, and nothing below or above it', async () => {
      await blobs.put('a/b', Buffer.from('x'));
      await blobs.put('empty', Buffer.alloc(0));
      expect(await blobs.has('a/b')).toBe(true);
      expect(await blobs.has('empty')).toBe(true);
      for (const key of ['nothing', 'a', 'a/b/c', 'a/bc']) expect(await blobs.has(key)).toBe(false);
      await blobs.delete('a/b');
      expect(await blobs.has('a/b')).toBe(false);
    });

    test('put replaces the blob whole', async () => {
      await blobs.put('k', Buffer.from('a long first text'));
      await blobs.put('k', Buffer.from('short'));
      expect(await text('k')).toBe('short');
    });

    test.each([
      [0, 4, '0123'],
      [3, 4, '3456'],
      [8, 100, '89'],
      [10, 5, ''],
      [50, 5, ''],
      [4, 0, ''],
    ])('a range from %i of %i bytes', async (offset, length, expected) => {
      await blobs.put('digits', Buffer.from('0123456789'));
      expect((await blobs.read('digits', { offset, length }))?.toString()).toBe(expected);
    });

    test('appended pieces become one blob, and size counts them', async () => {
      const pieces = [randomBytes(10), randomBytes(300_000), Buffer.alloc(0), randomBytes(1)];
      const writer = await blobs.write('w/pieces');
      let size = 0;
      for (const piece of pieces) {
        expect(writer.size).toBe(size);
        await writer.append(piece);
        size += piece.length;
      }
      expect(writer.size).toBe(size);
      await writer.commit();
      expect((await blobs.read('w/pieces'))?.equals(Buffer.concat(pieces))).toBe(true);
    });

    test('pieces that are given together follow each other', async () => {
      const pieces = [10, 0, 70_000, 1].map((bytes) => randomBytes(bytes));
      // More than the system writes in one call.
      const many = Array.from({ length: 1_500 }, () => randomBytes(7));
      const writer = await blobs.write('w/together');
      await writer.append([]);
      await writer.append(pieces);
      await writer.append(Buffer.from('between'));
      await writer.append(many);
      expect(writer.size).toBe(70_011 + 7 + 10_500);
      await writer.commit();
      const whole = Buffer.concat([...pieces, Buffer.from('between'), ...many]);
      expect((await blobs.read('w/together'))?.equals(whole)).toBe(true);
    });

    test('what was appended stays as it was when its memory is used again', async () => {
      const writer = await blobs.write('w/again');
      const memory = Buffer.alloc(400_000);
      const whole: Buffer[] = [];
      // Together more than two parts of a multipart upload.
      for (let turn = 0; turn < 30; turn++) {
        randomFillSync(memory);
        whole.push(Buffer.from(memory));
        await writer.append([memory.subarray(0, 7), memory.subarray(7)]);
      }
      memory.fill(0);
      await writer.commit();
      expect((await blobs.read('w/again'))?.equals(Buffer.concat(whole))).toBe(true);
    });

    test('nothing is visible before commit, and the old blob stays until then', async () => {
      await blobs.put('k', Buffer.from('old'));
      const replacing = await blobs.write('k');
      await replacing.append(Buffer.from('new'));
      const fresh = await blobs.write('fresh');
      await fresh.append(Buffer.from('new'));
      expect(await text('k')).toBe('old');
      expect(await text('fresh')).toBeNull();
      expect(await keys('')).toEqual(['k']);
      await replacing.commit();
      await fresh.commit();
      expect(await text('k')).toBe('new');
      expect(await text('fresh')).toBe('new');
    });

    test('a blob may get its key at its last byte, and only that one', async () => {
      const bytes = randomBytes(200_000);
      const writer = await blobs.write('media/unnamed');
      await writer.append(bytes);
      expect(await keys('')).toEqual([]);
      await writer.commit('media/ab/by-its-hash');
      expect((await blobs.read('media/ab/by-its-hash'))?.equals(bytes)).toBe(true);
      expect(await blobs.has('media/unnamed')).toBe(false);
      expect(await keys('')).toEqual(['media/ab/by-its-hash']);
    });

    test('an empty blob may get its key at the end too', async () => {
      await (await blobs.write('unnamed')).commit('named');
      expect(await blobs.read('named')).toHaveLength(0);
      expect(await keys('')).toEqual(['named']);
    });

    test('the same key twice is harmless, also at once, and another blob under it is replaced whole', async () => {
      const write = async (content: string) => {
        const writer = await blobs.write('unnamed');
        await writer.append(Buffer.from(content));
        await writer.commit('hash');
      };
      await write('a longer text that was there before');
      await Promise.all(Array.from({ length: 8 }, () => write('same')));
      expect(await text('hash')).toBe('same');
      expect(await keys('')).toEqual(['hash']);
    });

    test('a key that is none is refused at commit, and the writer can still be aborted', async () => {
      const writer = await blobs.write('unnamed');
      await writer.append(Buffer.from('x'));
      await expect(writer.commit('../outside')).rejects.toThrow(/blob key/);
      await writer.abort();
      expect(await keys('')).toEqual([]);
    });

    test.each([undefined, 'large/by-its-hash'])(
      'a blob of many pieces and 12 MB, committed as %s, is whole and replaces the one before',
      async (as) => {
        const bytes = randomBytes(12_000_001);
        await blobs.put(as ?? 'large/own', Buffer.from('before'));
        const writer = await blobs.write('large/own');
        const piece = Buffer.alloc(700_000);
        for (let at = 0; at < bytes.length; at += piece.length) {
          const length = bytes.copy(piece, 0, at, at + piece.length);
          // The memory is used again for the next piece.
          await writer.append(piece.subarray(0, length));
        }
        expect(writer.size).toBe(bytes.length);
        expect(await text(as ?? 'large/own')).toBe('before');
        expect(await keys('')).toEqual([as ?? 'large/own']);
        await writer.commit(as);
        expect((await blobs.read(as ?? 'large/own'))?.equals(bytes)).toBe(true);
        expect(await keys('')).toEqual([as ?? 'large/own']);
      },
    );

    test('a large blob that is aborted leaves nothing', async () => {
      const writer = await blobs.write('large');
      await writer.append(Buffer.alloc(11_000_000));
      await writer.abort();
      expect(await keys('')).toEqual([]);
      await expect(writer.commit('large')).rejects.toThrow();
    });

    test('pieces that nobody waits for arrive in order', async () => {
      const bytes = randomBytes(11_000_000);
      const writer = await blobs.write('unawaited');
      const appends: Promise<void>[] = [];
      for (let at = 0; at < bytes.length; at += 1_000_000)
        appends.push(writer.append(bytes.subarray(at, at + 1_000_000)));
      await Promise.all(appends);
      await writer.commit();
      expect((await blobs.read('unawaited'))?.equals(bytes)).toBe(true);
    });

    test('abort leaves nothing, and may be called twice', async () => {
      const writer = await blobs.write('gone');
      await writer.append(randomBytes(1_000));
      await writer.abort();
      await writer.abort();
      expect(await blobs.read('gone')).toBeNull();
      expect(await keys('')).toEqual([]);
      await expect(writer.append(Buffer.from('x'))).rejects.toThrow();
      await expect(writer.commit()).rejects.toThrow();
    });

    test('a writer is done after commit, and a late abort takes nothing away', async () => {
      const writer = await blobs.write('kept');
      await writer.append(Buffer.from('x'));
      await writer.commit();
      await expect(writer.append(Buffer.from('y'))).rejects.toThrow();
      await expect(writer.commit()).rejects.toThrow();
      await writer.abort();
      expect(await text('kept')).toBe('x');
    });

    test('writers of one key do not mix; the last commit stays', async () => {
      const [first, second] = await Promise.all([blobs.write('same'), blobs.write('same')]);
      await Promise.all([first.append(Buffer.from('first')), second.append(Buffer.from('second'))]);
      await second.commit();
      await first.commit();
      expect(await text('same')).toBe('first');
    });

    test('many at once', async () => {
      const names = Array.from({ length: 100 }, (_, i) => `many/${i % 7}/${i}`);
      await Promise.all(names.map((key) => blobs.put(key, Buffer.from(key))));
      expect(await keys('many/')).toEqual([...names].sort());
      expect(await Promise.all(names.map(text))).toEqual(names);
    });

    test('delete removes one blob, and what is not there is no error', async () => {
      await blobs.put('d/1', Buffer.from('1'));
      await blobs.put('d/2', Buffer.from('2'));
      await blobs.delete('d/1');
      await blobs.delete('d/1');
      await blobs.delete('never/was');
      expect(await keys('')).toEqual(['d/2']);
    });

    test('list goes by the beginning of the key, not by folders', async () => {
      for (const key of ['job-1/a', 'job-1/b/c', 'job-10/a', 'job-2/a', 'zero'])
        await blobs.put(key, Buffer.from(key));
      expect(await keys('')).toEqual(['job-1/a', 'job-1/b/c', 'job-10/a', 'job-2/a', 'zero']);
      expect(await keys('job-1/')).toEqual(['job-1/a', 'job-1/b/c']);
      expect(await keys('job-1')).toEqual(['job-1/a', 'job-1/b/c', 'job-10/a']);
      expect(await keys('job-1/b/')).toEqual(['job-1/b/c']);
      expect(await keys('none/')).toEqual([]);
    });

    test('list tells size and time', async () => {
      await blobs.put('sized', Buffer.alloc(321));
      for await (const entry of blobs.list('sized')) {
        expect(entry.bytes).toBe(321);
        // Stores keep whole seconds, and their clock may differ a little.
        expect(Math.abs(entry.modifiedAt - Date.now())).toBeLessThan(60_000);
      }
      expect(await keys('sized')).toEqual(['sized']);
    });

    test.each([
      '',
      '/',
      '/a',
      'a/',
      'a//b',
      '../a',
      'a/../b',
      'a..b',
      '.',
      './a',
      'a/.b',
      'a b',
      'a\\b',
      'ä',
      'a\0',
      'a\n',
    ])('the key %j is refused by everything', async (key) => {
      const attempts = [
        async () => blobs.put(key, Buffer.from('x')),
        async () => blobs.write(key),
        async () => blobs.has(key),
        async () => blobs.read(key),
        async () => blobs.delete(key),
        async () => blobs.locate(key),
      ];
      for (const attempt of attempts) await expect(attempt()).rejects.toThrow(/blob key/);
    });

    test('locate names the key', () => {
      expect(blobs.locate('a/b.warc.gz')).toContain('b.warc.gz');
    });
  });
}
