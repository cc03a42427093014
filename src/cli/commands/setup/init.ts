import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf, SeineError } from '../../../core/errors.ts';
import { isHttpUrl } from '../../../core/job-schema/source-name.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import { jobJsonSchema } from '../../../job-file/json-schema.ts';
import { makeFolder } from '../../../machine/make-folder.ts';
import { type Command, print, printJson } from '../../context.ts';
import { PRACTICE_SHOP, readmeOf, TEMPLATES } from './templates.ts';

const INSTALLED_SCHEMA = 'node_modules/seine/schema/job.json';
const OWN_SCHEMA = 'seine-job.schema.json';

/** As strict as the examples; a job file is bundled, so nothing is written by the compiler. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    module: 'nodenext',
    moduleDetection: 'force',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
  },
  include: ['*.ts'],
};

/** Writes a job that runs as it is. What is there stays as it is. */
export const initCommand: Command = async (context) => {
  const { args, values } = context.parsed;
  // `seine init https://…` means the usual one.
  const [kind = 'shop', given] = args.length === 1 && isHttpUrl(args[0]!) ? ['shop', args[0]] : args;
  if (!Object.hasOwn(TEMPLATES, kind))
    throw new SeineError(`there is no template '${kind}'${suggestion(kind, Object.keys(TEMPLATES))}`, {
      hint: `choose one of ${Object.keys(TEMPLATES).join(', ')}`,
    });
  const template = TEMPLATES[kind]!;
  const url = siteOf(given);
  const dir = values.into ?? '.';
  const isYaml = values.yaml === 'true';
  const file = `${template.name}.${isYaml ? 'yaml' : 'ts'}`;
  if (existsSync(join(dir, file)))
    throw new SeineError(`${join(dir, file)} exists already`, { hint: 'choose another folder with --into' });
  const files: Record<string, string> = {
    [file]: isYaml ? schemaLine(dir) + template.yaml(url) : template.typescript(url),
    ...template.files?.(url),
    ...(isYaml
      ? existsSync(join(dir, INSTALLED_SCHEMA))
        ? {}
        : { [OWN_SCHEMA]: `${JSON.stringify(jobJsonSchema(), null, 2)}\n` }
      : { 'tsconfig.json': `${JSON.stringify(TSCONFIG, null, 2)}\n` }),
    'README.md': readmeOf(template, file, url),
  };
  const kept = Object.keys(files).filter((name) => existsSync(join(dir, name)));
  const written = Object.keys(files).filter((name) => !kept.includes(name));
  try {
    makeFolder(dir);
    for (const name of written) writeFileSync(join(dir, name), files[name]!);
  } catch (error) {
    throw new SeineError(`cannot write to ${dir}: ${messageOf(error)}`, {
      hint: 'choose another folder with --into',
      cause: error,
    });
  }
  if (context.json) printJson(context, { dir, written, kept });
  else
    print(
      context.stdout,
      [
        `wrote ${written.join(', ')}${dir === '.' ? '' : ` in ${dir}`}`,
        ...(kept.length > 0 ? [`kept ${kept.join(', ')} as they were`] : []),
        'next:',
        ...(dir === '.' ? [] : [`  cd ${dir}`]),
        ...(url === PRACTICE_SHOP
          ? [
              `  npx seine shop${template.shopOptions ?? ''}    # in another terminal: the shop that the job reads`,
            ]
          : []),
        `  npx seine run ${file}`,
        '',
      ].join('\n'),
    );
  return 'success';
};

function siteOf(given: string | undefined): string {
  if (given === undefined) return PRACTICE_SHOP;
  const parsed = isHttpUrl(given) ? URL.parse(given) : null;
  if (!parsed) throw new SeineError(`not an http(s) URL: ${given}`);
  return parsed.href;
}

/** Editors with a YAML language server check the file by it. */
function schemaLine(dir: string): string {
  const place = existsSync(join(dir, INSTALLED_SCHEMA)) ? `./${INSTALLED_SCHEMA}` : `./${OWN_SCHEMA}`;
  return `# yaml-language-server: $schema=${place}\n`;
}
