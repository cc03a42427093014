import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { ApiError } from './http-reply.ts';

/** What calls are signed with, made for each run of the emulator. */
export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

export function makeCredentials(): Credentials {
  return {
    accessKeyId: `SEINE${randomBytes(8).toString('hex').toUpperCase()}`,
    secretAccessKey: randomBytes(32).toString('base64url'),
  };
}

/** As AWS allows it. */
const CLOCK_SKEW_MS_MAX = 5 * 60_000;
/** Without these, somebody could send a signed request again for another host, another time or another body. */
const SIGNED_ALWAYS = ['host', 'x-amz-content-sha256', 'x-amz-date'];

interface SignedRequest {
  method: string;
  /** Path and query, as they came. */
  url: string;
  headers: IncomingHttpHeaders;
}

/**
 * Checks the AWS Signature Version 4 of a request before its body is read, so that a stranger cannot make the emulator
 * hold bytes. The signature covers the hash of the body, which `checkBody` compares afterwards.
 */
export function checkSignature(request: SignedRequest, credentials: Credentials, now: number): void {
  const { headers } = request;
  const given = parseAuthorization(headers.authorization);
  const date = one(headers['x-amz-date']);
  if (given === null || date === null)
    throw new ApiError(403, 'MissingAuthenticationTokenException', 'Missing Authentication Token');
  const [day, region, service, end] = given.scope;
  const isKnown = isEqual(given.accessKeyId, credentials.accessKeyId);
  if (!isKnown)
    throw new ApiError(
      403,
      'UnrecognizedClientException',
      'The security token included in the request is invalid.',
    );
  const signedAt = timeOf(date);
  if (!(Math.abs(now - signedAt) <= CLOCK_SKEW_MS_MAX) || !date.startsWith(`${day}T`))
    throw refused('Signature expired or not yet valid');
  if (end !== 'aws4_request' || SIGNED_ALWAYS.some((name) => !given.signedHeaders.includes(name)))
    throw refused('The signature leaves something out');
  const canonical = canonicalRequest(request, given.signedHeaders);
  if (canonical === null) throw refused('A signed header is missing');
  const toSign = ['AWS4-HMAC-SHA256', date, given.scope.join('/'), sha256(canonical)].join('\n');
  const key = [day!, region!, service!, 'aws4_request'].reduce<Buffer | string>(
    (last, part) => hmac(last, part),
    `AWS4${credentials.secretAccessKey}`,
  );
  if (!isEqual(given.signature, hmac(key, toSign).toString('hex')))
    throw refused('The request signature we calculated does not match the signature you provided.');
}

/** The body must be the one whose hash was signed. */
export function checkBody(headers: IncomingHttpHeaders, body: Buffer): void {
  if (!isEqual(one(headers['x-amz-content-sha256']) ?? '', sha256(body)))
    throw refused('The body does not match its hash.');
}

function refused(message: string): ApiError {
  return new ApiError(403, 'InvalidSignatureException', message);
}

interface Authorization {
  accessKeyId: string;
  scope: string[];
  signedHeaders: string[];
  signature: string;
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([\w-]{1,64})\/(\d{8}\/[\w-]{1,64}\/[\w-]{1,64}\/\w{1,16}), *SignedHeaders=([a-z0-9;-]{1,1000}), *Signature=([0-9a-f]{64})$/;

function parseAuthorization(text: string | undefined): Authorization | null {
  const found = AUTHORIZATION.exec(text ?? '');
  if (!found) return null;
  const [, accessKeyId, scope, signedHeaders, signature] = found as string[];
  return {
    accessKeyId: accessKeyId!,
    scope: scope!.split('/'),
    signedHeaders: signedHeaders!.split(';'),
    signature: signature!,
  };
}

/** Null when a signed header did not come. */
function canonicalRequest({ method, url, headers }: SignedRequest, signedHeaders: string[]): string | null {
  const [path = '/', query = ''] = url.split('?', 2);
  const lines: string[] = [];
  for (const name of signedHeaders) {
    const value = one(headers[name]);
    if (value === null) return null;
    lines.push(`${name}:${value.trim().replace(/ +/g, ' ')}\n`);
  }
  return [
    method,
    // Every service but S3 encodes the path once more.
    path.split('/').map(encode).join('/'),
    canonicalQuery(query),
    lines.join(''),
    signedHeaders.join(';'),
    one(headers['x-amz-content-sha256']),
  ].join('\n');
}

function canonicalQuery(query: string): string {
  return [...new URLSearchParams(query)]
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .sort()
    .join('&');
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** `20260102T030405Z` in epoch milliseconds; NaN for anything else. */
function timeOf(date: string): number {
  const found = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  if (!found) return Number.NaN;
  const [, year, month, day, hour, minute, second] = found;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

function one(value: string | string[] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** Takes the same time wherever the first difference is. */
function isEqual(given: string, wanted: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(wanted)));
}
