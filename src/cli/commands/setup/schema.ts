import { jobJsonSchema } from '../../../job-file/json-schema.ts';
import type { Command } from '../../context.ts';

export const schemaCommand: Command = async (context) => {
  context.stdout.write(`${JSON.stringify(jobJsonSchema(), null, 2)}\n`);
  return 'success';
};
