import { isS3Url, parseS3Url } from '../../aws/s3/s3-url.ts';
import type { WorkerKind } from '../../core/batch/batch.ts';
import { SeineError } from '../../core/errors.ts';

/** What is to be there after a deployment, and what of it differs. Pure. */

export interface Wanted {
  name: string;
  /** Those with a browser are container images. */
  kind: WorkerKind;
  role: string;
  region: string;
  memoryMb: number;
  timeoutSeconds: number;
  tmpMb: number;
  architecture: 'x86_64' | 'arm64';
  variables: Record<string, string>;
  /** `s3://bucket/prefix`; null when pages are kept elsewhere, for an emulator. */
  blobs: string | null;
}

/** An image is known by its name, so each build gives it another one. */
export type WantedCode = { kind: 'zip'; bytes: Uint8Array; sha256: string } | { kind: 'image'; uri: string };

export const RUNTIME = 'nodejs24.x';
export const HANDLER = 'index.handler';
export const POLICY_NAME = 'seine';

interface Policy {
  Version: '2012-10-17';
  Statement: object[];
}

export const TRUST: Policy = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
};

/**
 * No more than a worker needs: its own log, and its pages. It knows nothing of a database. The code of a job in one function
 * must not change the code of jobs in others, nor what is stored already.
 */
export function policyOf({ name, region, blobs }: Wanted): Policy {
  const partition = partitionOf(region);
  const log = `arn:${partition}:logs:${region}:*:log-group:/aws/lambda/${name}`;
  const statements: object[] = [
    {
      Effect: 'Allow',
      Action: ['logs:CreateLogGroup', 'logs:CreateLogStream', 'logs:PutLogEvents'],
      Resource: [log, `${log}:*`],
    },
  ];
  if (blobs !== null) {
    const { bucket, prefix } = placeOf(blobs);
    statements.push(
      {
        Effect: 'Allow',
        Action: ['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload'],
        Resource: `arn:${partition}:s3:::${bucket}/${prefix}*`,
      },
      {
        Effect: 'Allow',
        Action: 's3:DeleteObject',
        Resource: `arn:${partition}:s3:::${bucket}/${prefix}.tmp/*`,
      },
      {
        Effect: 'Deny',
        Action: ['s3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
        Resource: `arn:${partition}:s3:::${bucket}/${prefix}bundles/*`,
      },
      // S3 says of an object that is not there that it is forbidden; whether it is there is asked with this.
      {
        Effect: 'Allow',
        Action: 's3:ListBucket',
        Resource: `arn:${partition}:s3:::${bucket}`,
        Condition: { StringLike: { 's3:prefix': `${prefix}*` } },
      },
    );
  }
  return { Version: '2012-10-17', Statement: statements };
}

function partitionOf(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';
}

/** The prefix ends with a slash, or is empty. */
function placeOf(blobs: string): { bucket: string; prefix: string } {
  const { bucket, key } = parseS3Url(blobs);
  const prefix = key.replace(/\/+$/, '');
  return { bucket, prefix: prefix === '' ? '' : `${prefix}/` };
}

/** What is asked of Lambda besides the code, as its API names it. */
export function configurationOf(wanted: Wanted) {
  return {
    ...(wanted.kind === 'http' ? ({ Runtime: RUNTIME, Handler: HANDLER } as const) : {}),
    Timeout: wanted.timeoutSeconds,
    MemorySize: wanted.memoryMb,
    EphemeralStorage: { Size: wanted.tmpMb },
    Environment: { Variables: wanted.variables },
  } as const;
}

export interface Present {
  role: string;
  codeSha256: string;
  /** Null for a zip. */
  imageUri: string | null;
  architecture: string;
  Runtime: string;
  Handler: string;
  Timeout: number;
  MemorySize: number;
  EphemeralStorage: { Size: number };
  Environment: { Variables: Record<string, string> };
}

export function isSameCode(present: Present, code: WantedCode): boolean {
  if (code.kind === 'zip') return present.codeSha256 === code.sha256;
  return present.imageUri === code.uri || code.uri.endsWith(`@sha256:${present.codeSha256}`);
}

/** Lambda never makes one out of the other. */
export function checkPackage({ name, kind }: Wanted, { imageUri }: Present): void {
  if ((imageUri !== null) === (kind === 'browser')) return;
  throw new SeineError(
    `the function ${name} uses ${imageUri === null ? 'a zip' : 'an image'}, and Lambda cannot change it to ${imageUri === null ? 'an image' : 'a zip'}`,
    { hint: 'choose another --name, or delete the function' },
  );
}

/** Of ECR, since Lambda takes no other: `account.dkr.ecr.region.amazonaws.com/name:tag`. */
export function checkImage(uri: string | undefined): string {
  if (uri === undefined)
    throw new SeineError('a function with a browser needs an image', {
      hint: 'build one with `seine lambda build --kind browser`, then pass --image account.dkr.ecr.region.amazonaws.com/name:tag',
    });
  if (/^[a-z0-9][\w./-]*(:\d+\/[\w./-]+)?(:[\w.-]{1,128}|@sha256:[0-9a-f]{64})$/.test(uri)) return uri;
  throw new SeineError(`'${uri}' is not an image URI`, {
    hint: 'use name:tag or name@sha256:… of an image in ECR',
  });
}

/** Names of what differs, without values: variables may be secrets. */
export function differencesOf(present: Present, wanted: Wanted, roleArn: string | null): string[] {
  const asked = configurationOf(wanted);
  const differs: string[] = [];
  const note = (name: string, now: unknown, then: unknown) => {
    if (now !== then) differs.push(`${name} ${now} → ${then}`);
  };
  note('runtime', present.Runtime, asked.Runtime ?? '');
  note('handler', present.Handler, asked.Handler ?? '');
  note('timeout', present.Timeout, asked.Timeout);
  note('memory', present.MemorySize, asked.MemorySize);
  note('/tmp', present.EphemeralStorage.Size, asked.EphemeralStorage.Size);
  const [now, then] = [present.Environment.Variables, wanted.variables];
  const names = new Set([...Object.keys(now), ...Object.keys(then)]);
  const changed = [...names].filter((name) => now[name] !== then[name]).sort();
  if (changed.length > 0) differs.push(`variables ${changed.join(', ')}`);
  if (roleArn === null || present.role !== roleArn) differs.push('role');
  return differs;
}

export function sameJson(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Workers in Lambda can keep nothing on a disk of ours. */
export function checkBlobs(blobs: string | null, isEmulated: boolean): string | null {
  if (blobs !== null && isS3Url(blobs)) {
    parseS3Url(blobs);
    return blobs;
  }
  if (isEmulated) return null;
  throw new SeineError('Lambda workers need S3 storage for pages', {
    hint: 'pass --blobs s3://bucket/prefix',
  });
}
