import { readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join, matchesGlob } from 'node:path';
import { messageOf, SeineError } from '../core/errors.ts';

/** What an image of a function is made of, as its Dockerfile says it. */
interface ImageRecipe {
  base: string;
  /** What is copied, and where to, below the folder of the function. */
  copies: { sources: string[]; to: string }[];
  variables: Record<string, string>;
  /** `file.export`, which Lambda's own loop in the base image is told. */
  handler: string;
}

const TASK_ROOT = /^\$\{LAMBDA_TASK_ROOT\}\/?/;

/** Of the Dockerfiles there are only those that are ours: one stage, which copies, sets variables and names the handler. */
export function parseRecipe(text: string): ImageRecipe {
  const recipe: ImageRecipe = { base: '', copies: [], variables: {}, handler: '' };
  for (const line of text.split('\n').filter((one) => one.trim() !== '' && !one.startsWith('#'))) {
    const [, verb, rest = ''] = /^(\w+)\s+(.*)$/.exec(line.trim()) ?? [];
    const words = rest.split(/\s+/);
    if (verb === 'FROM') recipe.base = rest;
    else if (verb === 'COPY' && TASK_ROOT.test(words.at(-1)!))
      recipe.copies.push({ sources: words.slice(0, -1), to: words.at(-1)!.replace(TASK_ROOT, '') });
    else if (verb === 'ENV')
      for (const word of words) recipe.variables[word.split('=')[0]!] = word.slice(word.indexOf('=') + 1);
    else if (verb === 'CMD') [recipe.handler = ''] = JSON.parse(rest);
    else throw new Error(`unsupported line in the Dockerfile: ${line}`);
  }
  return recipe;
}

/** Does with a folder of `seine lambda build --kind browser` what Docker would: the files go to `target`. */
export async function layOutImage(folder: string, target: string): Promise<ImageRecipe> {
  try {
    const recipe = parseRecipe(readFileSync(join(folder, 'Dockerfile'), 'utf8'));
    for (const { sources, to } of recipe.copies)
      for (const source of sources) {
        const found = readdirSync(folder).filter((name) => matchesGlob(name, source));
        if (found.length === 0) throw new Error(`${source} does not exist`);
        const isMany = to === '' || to.endsWith('/');
        await mkdir(target, { recursive: true });
        for (const name of found)
          await cp(join(folder, name), join(target, to, isMany ? name : ''), { recursive: true });
      }
    return recipe;
  } catch (error) {
    throw new SeineError(`cannot read the image: ${messageOf(error)}`, {
      hint: 'see `seine lambda build --kind browser`',
    });
  }
}
