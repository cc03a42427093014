import { SeineError, StorageFullError } from '../core/errors.ts';

export const CHOOSE = 'choose another folder with --dir or --blobs';

/** What an operator can do something about is said in a sentence; the rest is passed on as it is. */
const SENTENCES: Record<string, { says: (path: string) => string; hint: string }> = {
  EACCES: {
    says: (path) => `no permission to use ${path}`,
    hint: CHOOSE,
  },
  EPERM: {
    says: (path) => `no permission to use ${path}`,
    hint: CHOOSE,
  },
  EROFS: { says: (path) => `${path} is on a read-only disk`, hint: CHOOSE },
  ENOTDIR: {
    says: (path) => `a parent of ${path} is not a folder`,
    hint: CHOOSE,
  },
  EEXIST: { says: (path) => `${path} is not a folder`, hint: CHOOSE },
  EMFILE: { says: () => 'too many open files', hint: 'raise the limit with `ulimit -n`' },
};

/** Space may come back; whoever stores something waits for it. */
const FULL: Record<string, (path: string) => string> = {
  ENOSPC: (path) => `the disk of ${path} is full`,
  EDQUOT: (path) => `the disk quota of ${path} is used up`,
};

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

export function explained(error: unknown, path: string): unknown {
  const code = codeOf(error) ?? '';
  if (FULL[code]) return new StorageFullError(FULL[code](path), { cause: error });
  const sentence = SENTENCES[code];
  return sentence ? new SeineError(sentence.says(path), { hint: sentence.hint, cause: error }) : error;
}

export async function orExplain<T>(action: Promise<T>, path: string): Promise<T> {
  try {
    return await action;
  } catch (error) {
    throw explained(error, path);
  }
}

/** For `catch`: what is not there is undefined, all other trouble goes on. */
export function ignoreAbsent(error: unknown): undefined {
  if (!isAbsent(error)) throw error;
}

export function isAbsent(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'ENOENT' || code === 'ENOTDIR';
}
