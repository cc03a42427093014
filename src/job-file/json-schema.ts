import { z } from 'zod';
import { jobSchema } from '../core/job-schema/job-schema.ts';

/** For editors: what a YAML or JSON job may say. */
export function jobJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(jobSchema, { io: 'input', unrepresentable: 'any' });
  return { ...schema, title: 'Seine job' };
}
