import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** X.509 certificates, which Node can read but not write: as much of DER as they need. */

export interface Signed {
  /** PEM. */
  cert: string;
  key: string;
}

interface Issuer extends Signed {
  issue(options: { names: readonly string[]; notBefore: Date; notAfter: Date }): Signed;
}

const EC_SHA256 = sequence(oid(1, 2, 840, 10045, 4, 3, 2));
const DAY_MS = 86_400_000;

/** A certificate authority that clients do not trust unless told to. */
export function createIssuer(name: string, now: Date): Issuer {
  const pair = newPair();
  const validity = { notBefore: new Date(+now - DAY_MS), notAfter: new Date(+now + 365 * DAY_MS) };
  const own = certificateOf({
    subject: name,
    issuer: name,
    pair,
    signer: pair,
    isAuthority: true,
    names: [],
    ...validity,
  });
  return {
    ...own,
    issue({ names, ...times }) {
      const leaf = newPair();
      return certificateOf({
        subject: names[0]!,
        issuer: name,
        pair: leaf,
        signer: pair,
        isAuthority: false,
        names,
        ...times,
      });
    },
  };
}

/** Signed by its own key. */
export function createSelfSigned(names: readonly string[], now: Date): Signed {
  const pair = newPair();
  const subject = names[0]!;
  const validity = { notBefore: new Date(+now - DAY_MS), notAfter: new Date(+now + 365 * DAY_MS) };
  return certificateOf({
    subject,
    issuer: subject,
    pair,
    signer: pair,
    isAuthority: false,
    names,
    ...validity,
  });
}

interface Pair {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

function newPair(): Pair {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function certificateOf(options: {
  subject: string;
  issuer: string;
  pair: Pair;
  signer: Pair;
  isAuthority: boolean;
  names: readonly string[];
  notBefore: Date;
  notAfter: Date;
}): Signed {
  const serial = randomBytes(16);
  // Neither negative nor with a zero in front.
  serial[0] = (serial[0]! & 0x3f) | 0x40;
  const content = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    EC_SHA256,
    commonName(options.issuer),
    sequence(time(options.notBefore), time(options.notAfter)),
    commonName(options.subject),
    options.pair.publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(...extensionsOf(options))),
  );
  const signature = sign('sha256', content, options.signer.privateKey);
  const whole = sequence(content, EC_SHA256, bitString(signature));
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${whole
      .toString('base64')
      .match(/.{1,64}/g)!
      .join('\n')}\n-----END CERTIFICATE-----\n`,
    key: options.pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function extensionsOf({ isAuthority, names }: { isAuthority: boolean; names: readonly string[] }): Buffer[] {
  const critical = tagged(0x01, Buffer.from([0xff]));
  const constraints = isAuthority ? sequence(critical) : sequence();
  const extensions = [sequence(oid(2, 5, 29, 19), critical, octets(constraints))];
  if (names.length > 0)
    extensions.push(sequence(oid(2, 5, 29, 17), octets(sequence(...names.map(generalName)))));
  return extensions;
}

function generalName(name: string): Buffer {
  return isIPv4(name)
    ? tagged(0x87, Buffer.from(name.split('.').map(Number)))
    : tagged(0x82, Buffer.from(name, 'ascii'));
}

function commonName(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid(2, 5, 4, 3), tagged(0x0c, Buffer.from(name)))));
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from(head), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function octets(content: Buffer): Buffer {
  return tagged(0x04, content);
}

function bitString(content: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), content);
}

/** As of RFC 5280, two digits of the year are for times before 2050. */
function time(at: Date): Buffer {
  const digits = at.toISOString().replace(/\.\d+|[-:T]/g, '');
  return at.getUTCFullYear() < 2050
    ? tagged(0x17, Buffer.from(digits.slice(2), 'ascii'))
    : tagged(0x18, Buffer.from(digits, 'ascii'));
}

function oid(first: number, second: number, ...rest: number[]): Buffer {
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 127];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 127) | 128);
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}
