/**
 * A shorter input that is handled just as badly. Pieces are taken out, large ones first, as long as `isBad` stays true;
 * then bytes are replaced by a plain one, which tells which of them matter.
 */
export async function minimise(
  input: Buffer,
  isBad: (input: Buffer) => Promise<boolean>,
  triesMax: number,
): Promise<Buffer> {
  let best = input;
  let tries = 0;
  const attempt = async (shorter: Buffer) => {
    if (tries++ >= triesMax || !(await isBad(shorter))) return false;
    best = shorter;
    return true;
  };
  for (let size = Math.ceil(best.length / 2); size >= 1 && tries < triesMax; ) {
    let isShorter = false;
    for (let at = 0; at < best.length && tries < triesMax; )
      if (await attempt(Buffer.concat([best.subarray(0, at), best.subarray(at + size)]))) isShorter = true;
      else at += size;
    if (!isShorter || size > 1) size = size === 1 ? 0 : Math.floor(size / 2);
  }
  for (let at = 0; at < best.length && tries < triesMax; at++) {
    if (best[at] === PLAIN) continue;
    const copy = Buffer.from(best);
    copy[at] = PLAIN;
    await attempt(copy);
  }
  return best;
}

const PLAIN = 'x'.charCodeAt(0);
