import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseNumber, TYPED_TEXT_MAX } from '../../../../src/core/values/parse-number.ts';

describe('numbers as people write them', () => {
  test.each([
    ['42', 42],
    ['1,234.5', 1234.5],
    ['1.234,5', 1234.5],
    ['1 234,5', 1234.5],
    ['1\u00a0234\u202f567', 1_234_567],
    ["1'234.50", 1234.5],
    ['1’234’567', 1_234_567],
    ['12,34,567.8', 1_234_567.8],
    ['1.234.567', 1_234_567],
    ['1,234,567', 1_234_567],
    ['12.5', 12.5],
    ['12,5', 12.5],
    ['0.125', 0.125],
    ['0,125', 0.125],
    ['1234.567', 1234.567],
    ['.5', 0.5],
    ['1e5', 100_000],
    ['-2.5E-3', -0.0025],
    ['007', 7],
    ['２３', 23],
    ['٣٫٥', 3.5],
    ['۱۲٬۳۴۵', 12_345],
    ['१२', 12],
  ])('%s is %d', (text, value) => expect(parseNumber(text)).toBe(value));

  test.each([
    ['weighs 5kg', 5],
    ['45 %', 45],
    ['4.5 out of 5', 4.5],
    ['(12 reviews)', 12],
    ['-5 °C', -5],
    ['−5', -5],
    ['between 10-20', 10],
    ['Model A-5', 5],
    ['No.5', 5],
    ['4 5', 4],
    ['2024 1000', 2024],
    ['1.5 250 g', 1.5],
    ["5'10", 5],
  ])('of %s it takes %d', (text, value) => expect(parseNumber(text)).toBe(value));

  test.each(['', 'sold out', '1.2.3', '1,2,3', '12.05.2024', '12,345.678,9', '1,23,4', '9'.repeat(400)])(
    '%s is none',
    (text) => expect(parseNumber(text)).toBeNull(),
  );

  test('one mark before three digits: a comma groups, a dot does not, unless the job says', () => {
    expect(parseNumber('1,234')).toBe(1234);
    expect(parseNumber('1.234')).toBe(1.234);
    expect(parseNumber('1,234', ',')).toBe(1.234);
    expect(parseNumber('1.234', ',')).toBe(1234);
    expect(parseNumber('1.234,5', '.')).toBeNull();
    expect(parseNumber('12.5', ',')).toBeNull();
  });

  test('a text too long for a number is none', () => {
    expect(parseNumber(`${'x'.repeat(TYPED_TEXT_MAX - 1)}5`)).toBe(5);
    expect(parseNumber(`${'x'.repeat(TYPED_TEXT_MAX)}5`)).toBeNull();
  });

  test.each(['en-US', 'de-DE', 'fr-FR', 'de-CH', 'en-IN', 'sv-SE', 'pt-BR', 'ar-EG', 'fa-IR', 'pl-PL'])(
    'whatever %s prints with two decimals is read again',
    (locale) => {
      const format = new Intl.NumberFormat(locale, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
      fc.assert(
        fc.property(fc.integer({ min: 0, max: 1e11 }), (cents) => {
          const value = cents / 100;
          expect(parseNumber(format.format(value)), format.format(value)).toBe(value);
        }),
      );
    },
  );

  test('whatever is given, the answer is a finite number or none', () => {
    const mess = fc.string({ unit: fc.constantFrom(..."0123456789.,'’ -–eE+x٣٫"), maxLength: 40 });
    fc.assert(
      fc.property(mess, (text) => {
        const value = parseNumber(text);
        expect(value === null || Number.isFinite(value)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
