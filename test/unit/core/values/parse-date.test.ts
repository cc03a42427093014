import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDate } from '../../../../src/core/values/parse-date.ts';
import { cpuMsOf } from '../../../support/cpu-time.ts';

describe('dates as sites write them', () => {
  test.each([
    ['2024-05-01', '2024-05-01'],
    ['2024/5/1', '2024-05-01'],
    ['20240501', '2024-05-01'],
    ['2024-05', '2024-05'],
    ['2024-05-01T10:00', '2024-05-01T10:00:00'],
    ['2024-05-01 10:00:00Z', '2024-05-01T10:00:00.000Z'],
    ['2024-05-01T10:00:30.5+02:00', '2024-05-01T08:00:30.500Z'],
    ['2024-05-01T10:00:00-0430', '2024-05-01T14:30:00.000Z'],
    ['20240501T101500Z', '2024-05-01T10:15:00.000Z'],
    ['Wed, 01 May 2024 10:00:00 GMT', '2024-05-01T10:00:00.000Z'],
    ['Wed, 1 May 24 10:00 EST', '2024-05-01T15:00:00.000Z'],
    ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
    ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37'],
    ['Wed May  1 10:00:00 UTC 2024', '2024-05-01T10:00:00.000Z'],
    ['Wed May 01 2024 10:00:00 GMT+0200 (CEST)', '2024-05-01T08:00:00.000Z'],
    ['1 May 2024', '2024-05-01'],
    ['1st of May 2024', '2024-05-01'],
    ['Wednesday, May 1st, 2024', '2024-05-01'],
    ['May 1, 2024 at 10:30 PM', '2024-05-01T22:30:00'],
    ['May 1, 2024 12:05 a.m.', '2024-05-01T00:05:00'],
    ['Sept. 3, 2023', '2023-09-03'],
    ['May 2024', '2024-05'],
    ['12. März 2024 um 14:05', '2024-03-12T14:05:00'],
    ['le 1er août 2024', '2024-08-01'],
    ['1 de mayo de 2024', '2024-05-01'],
    ['3 febbraio 2024', '2024-02-03'],
    ['7 mrt. 2024', '2024-03-07'],
    ['01.05.2024', '2024-05-01'],
    ['25/12/2024', '2024-12-25'],
    ['12/25/2024', '2024-12-25'],
    ['05-05-2024', '2024-05-05'],
    ['1714557600', '2024-05-01T10:00:00.000Z'],
    ['1714557600000', '2024-05-01T10:00:00.000Z'],
    ['Published on May 1, 2024 by Ann', '2024-05-01'],
    ['From 2024-05-01 to May 3, 2024', '2024-05-01'],
  ])('%s is %s', (text, iso) => expect(parseDate(text)).toBe(iso));

  test.each([
    ['could be two dates', '01/05/2024'],
    ['could be two dates', '01-05-2024'],
    ['is not in the calendar', '2024-02-30'],
    ['is not in the calendar', '13/13/2024'],
    ['is not on the clock', '2024-05-01T25:00'],
    ['is not on the clock', '2024-05-01 13:00 PM'],
    ['has no day', '2 hours ago'],
    ['has no day', '1 Foo 2024'],
    ['has no year', '1 May'],
    ['is only a year', '2024'],
    ['is empty', ''],
  ])('what %s is none: %s', (_, text) => expect(parseDate(text)).toBeNull());

  test('the job may say which comes first', () => {
    expect(parseDate('01/05/2024', { dayFirst: true })).toBe('2024-05-01');
    expect(parseDate('01/05/2024', { dayFirst: false })).toBe('2024-01-05');
    expect(parseDate('25/12/2024', { dayFirst: false })).toBeNull();
    expect(parseDate('01.05.2024', { dayFirst: false })).toBe('2024-05-01');
  });

  test('what it gives, it takes', () => {
    const date = fc.date({ min: new Date('1000-01-01'), max: new Date('9999-01-01'), noInvalidDate: true });
    fc.assert(
      fc.property(date, (value) => {
        const iso = value.toISOString();
        expect(parseDate(iso)).toBe(iso);
        expect(parseDate(iso.slice(0, 10))).toBe(iso.slice(0, 10));
        expect(parseDate(value.toUTCString())).toBe(`${iso.slice(0, 19)}.000Z`);
      }),
    );
  });

  test.each(['en-US', 'en-GB', 'de-DE', 'fr-FR', 'es-ES', 'it-IT', 'pt-BR', 'nl-NL'])(
    'whatever %s writes out in words is read again',
    (locale) => {
      const day = fc.date({ min: new Date('1970-01-01'), max: new Date('2069-01-01'), noInvalidDate: true });
      fc.assert(
        fc.property(day, fc.constantFrom('long', 'full', 'medium'), (value, dateStyle) => {
          const text = new Intl.DateTimeFormat(locale, { dateStyle, timeZone: 'UTC' }).format(value);
          // Some locales have numbers in the middle form, which may be two dates.
          if (!/\p{L}{3}/u.test(text)) return;
          expect(parseDate(text), text).toBe(value.toISOString().slice(0, 10));
        }),
      );
    },
  );

  test('a hostile text takes no time', async () => {
    // A text of a thousand characters takes microseconds; one that is gone through again and again would take years.
    for (const text of ['1 '.repeat(500), 'may '.repeat(250), '1-'.repeat(500), '2024-'.repeat(200)]) {
      expect(await cpuMsOf(() => parseDate(text))).toBeLessThan(1_000);
    }
  });
});
