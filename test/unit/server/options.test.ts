import { expect, test } from 'vitest';
import { batchSchema, parseAs, scrapeSchema } from '../../../src/server/api/requests/options.ts';
import type { Problem } from '../../../src/server/api/requests/problems.ts';

const errorsOf = (parse: () => unknown): unknown => {
  try {
    parse();
  } catch (error) {
    return (error as Problem).extensions.errors;
  }
  return null;
};

const url = 'https://a.example/';

test.each<[object, string, string]>([
  [{ url, formatz: ['html'] }, 'formatz', 'unknown field; did you mean formats?'],
  [{}, 'url', 'is missing'],
  [{ url: 5 }, 'url', 'expected string, received number'],
])('%o: %s %s', (body, field, message) => {
  expect(errorsOf(() => parseAs(scrapeSchema, body))).toEqual([{ field, message }]);
});

test('a value that is none of the known ones may be meant as one of them', () => {
  const errors = errorsOf(() => parseAs(scrapeSchema, { url, formats: ['markdwn'] }));
  expect(errors).toEqual([
    {
      field: 'formats.0',
      message: expect.stringMatching(/^expected one of html, .*; did you mean markdown\?$/),
    },
  ]);
});

test('so may a field within another', () => {
  const errors = errorsOf(() =>
    parseAs(batchSchema, { urls: [url], webhook: { url, event: ['job.failed'] } }),
  );
  expect(errors).toEqual([{ field: 'webhook.event', message: 'unknown field; did you mean events?' }]);
});
