import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../../src/core/url/address.ts';

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '93.184.216.34',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '198.51.101.0',
  '203.0.112.255',
  '203.0.114.0',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2001:4860:4860::8888',
  '2a00:1450:4001:81b::200e',
  '2001:200::1',
  '3ffe::1',
  '::ffff:8.8.8.8',
  '::ffff:808:808',
  '::8.8.8.8',
  '64:ff9b::8.8.8.8',
  '64:ff9b::808:808',
  '2002:808:808::1',
  '[2606:4700:4700::1111]',
];

const REFUSED: Record<string, string[]> = {
  'this network': ['0.0.0.0', '0.1.2.3'],
  loopback: ['127.0.0.1', '127.255.255.255', '::1', '0:0:0:0:0:0:0:1'],
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1'],
  'link-local and metadata': [
    '169.254.0.1',
    '169.254.169.254',
    '168.63.129.16',
    '100.100.100.200',
    'fe80::1',
    'febf::1',
    'fd00:ec2::254',
  ],
  'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  benchmark: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  'protocol assignments': ['192.0.0.1', '192.0.0.170', '2001:10::1', '2001:20::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
  'reserved and broadcast': [
    '240.0.0.1',
    '255.255.255.255',
    '192.88.99.1',
    '4000::1',
    '1::1',
    'e000::1',
    'fec0::1',
  ],
  unspecified: ['::', '0:0:0:0:0:0:0:0'],
  'unique local': ['fc00::1', 'fdff::1'],
  discard: ['100::1', '100:0:0:1::1'],
  'v4-mapped': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::FFFF:10.0.0.1',
    '::ffff:169.254.169.254',
    '0:0:0:0:0:ffff:c0a8:1',
  ],
  'v4-translated': ['::ffff:0:127.0.0.1', '::ffff:0:0a00:1'],
  'v4-compatible': ['::127.0.0.1', '::10.0.0.1', '::7f00:1'],
  NAT64: [
    '64:ff9b::127.0.0.1',
    '64:ff9b::a00:1',
    '64:ff9b::169.254.169.254',
    '64:ff9b:1::8.8.8.8',
    '64:ff9b:1::1',
  ],
  '6to4': ['2002:7f00:1::1', '2002:a00:1::', '2002:c0a8:101::1', '2002:a9fe:a9fe::'],
  Teredo: ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:0:808:808::1'],
  'with a zone': ['fe80::1%eth0', '2606:4700:4700::1111%1'],
  'no address': [
    '',
    'localhost',
    'example.com',
    '1.2.3',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '127.1',
    '1.2.3.4.5',
    ':::',
    '[::1',
    '[127.0.0.1]',
  ],
};

describe('isPublicAddress', () => {
  test.each(PUBLIC)('%s is public', (ip) => {
    expect(isPublicAddress(ip)).toBe(true);
  });

  for (const [reason, addresses] of Object.entries(REFUSED)) {
    test.each(addresses)(`%s is refused: ${reason}`, (ip) => {
      expect(isPublicAddress(ip)).toBe(false);
    });
  }

  test('however an IPv4 address is wrapped, it is judged alike', () => {
    fc.assert(
      fc.property(fc.ipV4(), (v4) => {
        const [a, b, c, d] = v4.split('.').map(Number) as [number, number, number, number];
        const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
        const wrapped = [
          `::ffff:${v4}`,
          `::ffff:${hex}`,
          `0:0:0:0:0:FFFF:${hex}`,
          `64:ff9b::${v4}`,
          `64:ff9b::${hex}`,
          `2002:${hex}::1`,
        ];
        expect(wrapped.map(isPublicAddress)).toEqual(wrapped.map(() => isPublicAddress(v4)));
      }),
      { numRuns: 500 },
    );
  });

  test('only global unicast and wrapped IPv4 can be public', () => {
    fc.assert(
      fc.property(fc.ipV6(), (ip) => {
        if (isPublicAddress(ip)) expect(ip).toMatch(/^(?:[23][0-9a-f]{3}:|::|0*:|0+:|64:)/i);
      }),
      { numRuns: 1_000 },
    );
  });
});
