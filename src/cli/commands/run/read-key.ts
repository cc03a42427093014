import type { ReadStream } from 'node:tty';

/** What of a terminal is needed to read a key. */
type KeyInput = Pick<ReadStream, 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>;

/** The next key, without Enter; as text, empty when the terminal is gone. Ctrl-C and Ctrl-D are keys like any other. */
export async function readKey(input: KeyInput): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const onData = (bytes: Buffer) => resolve(bytes.toString());
  const onEnd = () => resolve('');
  input.setRawMode(true);
  input.on('data', onData);
  input.on('end', onEnd);
  input.on('error', onEnd);
  input.resume();
  try {
    return await promise;
  } finally {
    input.off('data', onData);
    input.off('end', onEnd);
    input.off('error', onEnd);
    input.pause();
    input.setRawMode(false);
  }
}
