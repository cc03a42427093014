import { messageOf, SeineError } from '../../core/errors.ts';
import { ValidationError } from '../job/compiled-job.ts';
import type { RecordData, RecordSchema } from '../job/route-code.ts';
import { loadRegexCompiler } from './linear-regex.ts';

/** The record, or what the schema made of it. Throws a ValidationError when it does not fit. */
export type SchemaCheck = (record: RecordData) => unknown;

const PROBLEMS_SHOWN = 3;

/** A schema object of a library like zod; what it returns replaces the record. */
export function checkBySchema(schema: RecordSchema): SchemaCheck {
  return (record) => {
    const result = schema.safeParse(record);
    if (result.success) return result.data;
    const { issues } = result.error;
    const problems = issues
      .slice(0, PROBLEMS_SHOWN)
      .map(({ path, message }) => describeProblem(path.map(String), message));
    const more = issues.length - problems.length;
    throw new ValidationError(problems.join('; ') + (more > 0 ? `; and ${more} more` : ''));
  };
}

/** JSON Schema of draft 2020-12, or draft 7 when it says so. Loads its library, so it is called for few jobs. */
export async function compileJsonSchema(schema: RecordData, route: string): Promise<SchemaCheck> {
  try {
    const isDraft7 = String(schema.$schema ?? '').includes('draft-07');
    const Validator = isDraft7 ? (await import('ajv')).Ajv : (await import('ajv/dist/2020.js')).Ajv2020;
    const validate = new Validator({
      // Misspelt keywords show when the job is loaded; formats are remarks, as in the standard.
      strictSchema: true,
      strictTypes: false,
      strictTuples: false,
      validateFormats: false,
      // Every object has a `constructor`, and few records have a field of that name.
      ownProperties: true,
      logger: false,
      code: await linearPatterns(schema),
    }).compile(schema);
    return (record) => {
      if (validate(record)) return record;
      const { instancePath, message = 'does not fit' } = validate.errors![0]!;
      throw new ValidationError(describeProblem(instancePath.split('/').slice(1), message));
    };
  } catch (error) {
    throw new SeineError(`the schema of route '${route}' is not valid: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Patterns are tried on remote text, so they too must be linear. */
async function linearPatterns(schema: RecordData) {
  if (!JSON.stringify(schema).includes('"pattern')) return {};
  const compile = await loadRegexCompiler();
  // Ajv tells patterns apart by their text.
  const linear = (pattern: string) => ({ test: compile(pattern).test, toString: () => pattern });
  return { regExp: Object.assign(linear, { code: 'linear' }) };
}

function describeProblem(path: readonly string[], message: string): string {
  return path.length === 0 ? `the record ${message}` : `${path.join('.')}: ${message}`;
}
