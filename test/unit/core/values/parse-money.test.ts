import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isCurrency } from '../../../../src/core/values/currencies.ts';
import { parseMoney, toMoney } from '../../../../src/core/values/parse-money.ts';

const shown = (text: string, hints = {}) => {
  const money = parseMoney(text, hints);
  return money && `${money.amount} ${money.currency}`;
};

describe('prices', () => {
  test.each([
    ['€12.50', '12.5 EUR'],
    ['12,50 €', '12.5 EUR'],
    ['1.299 €', '1299 EUR'],
    ['1.299,00 €', '1299 EUR'],
    ['EUR 1,299.00', '1299 EUR'],
    ['EUR12', '12 EUR'],
    ['12 euros', '12 EUR'],
    ['$1,299', '1299 USD'],
    ['US$ 5', '5 USD'],
    ['CA$5', '5 CAD'],
    ['C$5', '5 CAD'],
    ['5 $CA', '5 CAD'],
    ['5,00 $ US', '5 USD'],
    ['R$ 1.234,56', '1234.56 BRL'],
    ['£ 1 299,00', '1299 GBP'],
    ['12€50', '12.5 EUR'],
    ['12,- €', '12 EUR'],
    ['CHF 12.–', '12 CHF'],
    ['Fr. 12.50', '12.5 CHF'],
    ['Rs. 499', '499 INR'],
    ['₹1,23,456.00', '123456 INR'],
    ['50 zł', '50 PLN'],
    ['499 руб.', '499 RUB'],
    ['¥1,000', '1000 JPY'],
    ['3,99€/kg', '3.99 EUR'],
    ['-€5', '-5 EUR'],
    ['€-5', '-5 EUR'],
    ['2 for €5', '5 EUR'],
    ['Was €20.00 now €12.50', '20 EUR'],
    ['12.50', '12.5 null'],
    ['Fritz 5', '5 null'],
    ['100 kr', '100 null'],
    ['KWD 1.299', '1.299 KWD'],
    ['1.299 KWD', '1.299 KWD'],
  ])('%s is %s', (text, money) => expect(shown(text)).toBe(money));

  test.each(['', 'sold out', '1.2M €', '$ 5 million', '12345678901234567890 €', '€1.2.3'])(
    '%s is none',
    (text) => expect(parseMoney(text)).toBeNull(),
  );

  test('the job may say what a shared sign, no sign, or a mark means', () => {
    expect(shown('$5', { currency: 'CAD' })).toBe('5 CAD');
    expect(shown('100 kr', { currency: 'SEK' })).toBe('100 SEK');
    expect(shown('12.50', { currency: 'SEK' })).toBe('12.5 SEK');
    expect(shown('€5', { currency: 'CAD' })).toBe('5 EUR');
    expect(shown('£5', { currency: 'CAD' })).toBe('5 GBP');
    expect(shown('1.299 €', { decimal: '.' })).toBe('1.299 EUR');
    expect(shown('1,299 €', { decimal: ',' })).toBe('1.299 EUR');
  });

  test('a gap before the cents', () => {
    expect(shown('118, 99 TL')).toBe('118.99 TRY');
    expect(shown('1.837, 32 €')).toBe('1837.32 EUR');
    expect(shown('$119. 95')).toBe('119.95 USD');
    expect(shown('Price: 118, 99 TL')).toBe('118.99 TRY');
    expect(shown('- $119. 95')).toBe('119.95 USD');
    expect(shown('-$119. 95')).toBe('-119.95 USD');
  });

  test('a gap between two numbers', () => {
    expect(shown('size 38, 45 €')).toBe('45 EUR');
    expect(shown('$5. 10 left')).toBe('5 USD');
    expect(shown('10, 20, 30 €')).toBe('30 EUR');
    expect(shown('$119. 950')).toBe('119 USD');
    expect(shown('118, 99 TL', { decimal: '.' })).toBe('99 TRY');
    expect(shown('1, 2, 50 €')).toBe('50 EUR');
  });

  test('marks that make no sense are no amount, and never NaN', () => {
    expect(parseMoney('$.75,333')).toBeNull();
    expect(parseMoney('$.75.333')).toBeNull();
    expect(shown('$.75')).toBe('0.75 USD');
    fc.assert(
      fc.property(fc.stringMatching(/^[$€]?[\d., ']{1,12} ?(?:TL|€)?$/), (text) => {
        expect(parseMoney(text)?.amount, text).not.toBeNaN();
      }),
    );
  });

  test('data for machines has its code beside it, and a dot for decimals', () => {
    expect(toMoney('1.299', 'eur')).toEqual({ amount: 1.299, currency: 'EUR' });
    expect(toMoney('1.299,50', 'EUR')).toEqual({ amount: 1299.5, currency: 'EUR' });
    expect(toMoney(12.5, 'XXX')).toEqual({ amount: 12.5, currency: null });
    expect(toMoney('$5', 'AUD')).toEqual({ amount: 5, currency: 'AUD' });
    expect(toMoney(5, null, { currency: 'SEK' })).toEqual({ amount: 5, currency: 'SEK' });
    expect(toMoney(Number.NaN, 'EUR')).toBeNull();
    expect(toMoney({}, 'EUR')).toBeNull();
  });

  test.each([
    'en-US',
    'de-DE',
    'fr-FR',
    'de-CH',
    'en-IN',
    'sv-SE',
    'pt-BR',
    'ja-JP',
    'pl-PL',
    'en-ZA',
    'tr-TR',
    'fr-CA',
  ])('whatever %s prints is read again', (locale) => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e10 }),
        fc.constantFrom('EUR', 'GBP', 'INR', 'PLN', 'BRL', 'CHF', 'TRY', 'USD', 'CAD', 'AUD', 'KWD', 'THB'),
        fc.constantFrom('code', 'symbol'),
        (cents, currency, currencyDisplay) => {
          const amount = cents / 100;
          const text = new Intl.NumberFormat(locale, { style: 'currency', currency, currencyDisplay }).format(
            amount,
          );
          // In Canada the sign alone is the Canadian one, so a job would say so.
          const hints = locale === 'fr-CA' ? { currency: 'CAD' } : {};
          expect(parseMoney(text, hints), text).toEqual({ amount, currency });
        },
      ),
    );
  });

  test('the codes are those of ISO 4217', () => {
    const known = Intl.supportedValuesOf('currency').filter(isCurrency);
    expect(known.length).toBeGreaterThan(150);
    expect(isCurrency('EURO')).toBe(false);
    expect(isCurrency('XXX')).toBe(false);
  });
});
