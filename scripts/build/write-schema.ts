import { mkdirSync, writeFileSync } from 'node:fs';
import { jobJsonSchema } from '../../src/job-file/json-schema.ts';

mkdirSync('schema', { recursive: true });
writeFileSync('schema/job.json', `${JSON.stringify(jobJsonSchema(), null, 2)}\n`);
