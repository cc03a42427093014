/** Currencies by the codes of ISO 4217, and the signs that stand for them. */

const CODES = new Set(
  (
    'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP ' +
    'CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF ' +
    'IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD ' +
    'MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB ' +
    'RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD ' +
    'UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG'
  ).split(' '),
);

/** Their amounts have three decimals, so the dot of `1.234` is a decimal mark. */
const OF_THREE_DECIMALS = new Set(['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND']);

/** `US$ 5`, `5 $US` and `5 $ US`. */
const DOLLARS: Record<string, string> = {};
for (const [letters, code] of [
  ['US', 'USD'],
  ['C', 'CAD'],
  ['CA', 'CAD'],
  ['A', 'AUD'],
  ['AU', 'AUD'],
  ['NZ', 'NZD'],
  ['HK', 'HKD'],
  ['S', 'SGD'],
  ['SG', 'SGD'],
  ['NT', 'TWD'],
  ['MX', 'MXN'],
] as const) {
  DOLLARS[`${letters}$`] = code;
  if (letters.length === 2) {
    DOLLARS[`$${letters}`] = code;
    DOLLARS[`$ ${letters}`] = code;
  }
}

/** Signs that mean one currency. Letters are matched as they stand, and not inside a word. */
const SIGNS: Record<string, string> = {
  '€': 'EUR',
  '₹': 'INR',
  '₽': 'RUB',
  '₺': 'TRY',
  '₴': 'UAH',
  '₩': 'KRW',
  '₫': 'VND',
  '₪': 'ILS',
  '฿': 'THB',
  '₱': 'PHP',
  '₦': 'NGN',
  '₸': 'KZT',
  '₾': 'GEL',
  '₼': 'AZN',
  '₡': 'CRC',
  '₲': 'PYG',
  '₵': 'GHS',
  '৳': 'BDT',
  ...DOLLARS,
  BR$: 'BRL',
  R$: 'BRL',
  'CN¥': 'CNY',
  'JP¥': 'JPY',
  元: 'CNY',
  円: 'JPY',
  원: 'KRW',
  zł: 'PLN',
  Kč: 'CZK',
  Ft: 'HUF',
  лв: 'BGN',
  руб: 'RUB',
  грн: 'UAH',
  lei: 'RON',
  TL: 'TRY',
  Fr: 'CHF',
  SFr: 'CHF',
  RM: 'MYR',
  Rp: 'IDR',
  'S/': 'PEN',
  euro: 'EUR',
  euros: 'EUR',
  Euro: 'EUR',
  Euros: 'EUR',
};

/** Signs that several share, with the one meant when the job does not say; null where none prevails. */
const SHARED_SIGNS: Record<string, { usual: string | null; shared: string }> = {
  $: {
    usual: 'USD',
    shared:
      'USD CAD AUD NZD HKD SGD TWD MXN ARS CLP COP UYU DOP JMD TTD BBD BSD BZD FJD GYD NAD SRD XCD BND BMD KYD LRD',
  },
  '£': { usual: 'GBP', shared: 'GBP EGP GIP FKP SHP SSP SYP LBP SDG' },
  '¥': { usual: 'JPY', shared: 'JPY CNY' },
  '￥': { usual: 'JPY', shared: 'JPY CNY' },
  Rs: { usual: 'INR', shared: 'INR PKR LKR NPR MUR SCR' },
  R: { usual: 'ZAR', shared: 'ZAR' },
  kr: { usual: null, shared: 'SEK NOK DKK ISK' },
  Kr: { usual: null, shared: 'SEK NOK DKK ISK' },
};

/** Longest first: `US$` before `$`. */
const MARKS = [...Object.keys(SIGNS), ...Object.keys(SHARED_SIGNS)].sort((a, b) => b.length - a.length);

export function isCurrency(code: string): boolean {
  return CODES.has(code);
}

export function hasThreeDecimals(currency: string | null): boolean {
  return currency !== null && OF_THREE_DECIMALS.has(currency);
}

/** The sign or code that ends right before `end`, or begins right at `start`; null when there is none. */
export function markBefore(text: string, end: number): string | null {
  const code = text.slice(Math.max(0, end - 3), end);
  if (CODES.has(code) && !isLetter(text[end - 4])) return code;
  return (
    MARKS.find(
      (mark) => text.endsWith(mark, end) && !(isLetter(mark[0]) && isLetter(text[end - mark.length - 1])),
    ) ?? null
  );
}

export function markAfter(text: string, start: number): string | null {
  const code = text.slice(start, start + 3);
  if (CODES.has(code) && !isLetter(text[start + 3])) return code;
  return (
    MARKS.find(
      (mark) =>
        text.startsWith(mark, start) && !(isLetter(mark.at(-1)) && isLetter(text[start + mark.length])),
    ) ?? null
  );
}

/** `usual` is the currency that the job expects: it decides what a sign means that several currencies share. */
export function currencyOf(mark: string | null, usual: string | null): string | null {
  if (mark === null) return usual;
  if (CODES.has(mark)) return mark;
  if (Object.hasOwn(SIGNS, mark)) return SIGNS[mark]!;
  const sign = SHARED_SIGNS[mark]!;
  return usual !== null && sign.shared.includes(usual) ? usual : sign.usual;
}

function isLetter(char: string | undefined): boolean {
  return char !== undefined && /\p{L}/u.test(char);
}
