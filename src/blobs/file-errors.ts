import { SeineError } from '../core/errors.ts';

/** What an operator can do something about is said in a sentence; the rest is passed on as it is. */
const SENTENCES: Record<string, { says: (path: string) => string; hint: string }> = {
  ENOSPC: {
    says: (path) => `The disk that holds ${path} is full.`,
    hint: 'Free some space, then `seine resume`.',
  },
  EDQUOT: {
    says: (path) => `The disk quota for ${path} is used up.`,
    hint: 'Free some space, then `seine resume`.',
  },
  EACCES: {
    says: (path) => `There is no permission to use ${path}.`,
    hint: 'Choose another folder with --dir.',
  },
  EPERM: {
    says: (path) => `There is no permission to use ${path}.`,
    hint: 'Choose another folder with --dir.',
  },
  EROFS: { says: (path) => `${path} is on a read-only disk.`, hint: 'Choose another folder with --dir.' },
  ENOTDIR: {
    says: (path) => `${path} lies below something that is not a folder.`,
    hint: 'Choose another folder with --dir.',
  },
  EEXIST: { says: (path) => `${path} is not a folder.`, hint: 'Choose another folder with --dir.' },
  EMFILE: { says: () => 'Too many files are open.', hint: 'Raise the limit with `ulimit -n`.' },
};

export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

export function explained(error: unknown, path: string): unknown {
  const sentence = SENTENCES[codeOf(error) ?? ''];
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
  const code = codeOf(error);
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error;
}
