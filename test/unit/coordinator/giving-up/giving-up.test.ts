import { expect, test } from 'vitest';
import { GivenUp } from '../../../../src/coordinator/giving-up/giving-up.ts';

test('what was given up is refused by its host, or by its origin where only robots.txt is missing', () => {
  const givenUp = new GivenUp();
  expect(givenUp.reasonFor('https://a.example/1')).toBeNull();
  givenUp.add({ place: 'a.example', code: 'host-down', detail: '6 probes failed' });
  givenUp.add({ place: 'https://b.example', code: 'robots-unreachable', detail: 'status 500' });
  expect(givenUp.reasonFor('http://a.example/1')).toEqual({ code: 'host-down', detail: '6 probes failed' });
  expect(givenUp.reasonFor('https://b.example/1')).toMatchObject({ code: 'robots-unreachable' });
  expect(givenUp.reasonFor('http://b.example/1')).toBeNull();
  expect(givenUp.reasonFor('https://a.example:8443/1')).toBeNull();
  // Another run, of this job or another in the same process, begins with nothing.
  expect(new GivenUp().reasonFor('http://a.example/1')).toBeNull();
});
