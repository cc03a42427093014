import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { HANDLER, policyOf, RUNTIME, TRUST, type Wanted } from '../../../../src/cli/lambda/deploy-plan.ts';
import { SIZES } from '../../../../src/cli/lambda/option-values.ts';
import { SETTINGS } from '../../../../src/config/schema.ts';

interface Template {
  Transform: string;
  Parameters: Record<string, { Default?: unknown; AllowedPattern?: string }>;
  Resources: Record<string, { Type: string; DependsOn?: string; Properties: Record<string, unknown> }>;
  Outputs: Record<string, { Value: unknown }>;
}

/** Functions of CloudFormation, with what they refer to. */
class Call {
  readonly name: string;
  readonly value: string;

  constructor(name: string, value: string) {
    this.name = name;
    this.value = value;
  }
}

const customTags = [
  ...['Ref', 'Sub', 'GetAtt'].map((name) => ({
    tag: `!${name}`,
    resolve: (value: string) => new Call(name, value),
  })),
  ...['If', 'Not', 'Equals'].map((name) => ({ tag: `!${name}`, collection: 'seq' as const })),
];
function readTemplate(name: string): Template {
  const text = readFileSync(new URL(`../../../../deploy/lambda/${name}`, import.meta.url), 'utf8');
  return parse(text, { customTags });
}

const KINDS = {
  'template.yaml': {
    code: { Handler: HANDLER, Runtime: RUNTIME, CodeUri: 'seine-lambda.zip' },
    sizes: { ...SIZES.http, architecture: 'x86_64' },
  },
  'template-browser.yaml': {
    code: { PackageType: 'Image', ImageUri: new Call('Ref', 'ImageUri'), Architectures: ['x86_64'] },
    sizes: { ...SIZES.browser, architecture: undefined },
  },
};

function callsIn(value: unknown): Call[] {
  if (value instanceof Call) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(callsIn) : [];
}

function namesIn({ name, value }: Call): string[] {
  if (name === 'Ref') return [value];
  if (name === 'GetAtt') return [value.split('.')[0]!];
  return [...value.matchAll(/\$\{([^}]+)\}/g)].map(([, inner]) => inner!);
}

/** With parameters as given, as CloudFormation would fill them in. */
function filled(value: unknown, given: Record<string, string>): unknown {
  if (value instanceof Call)
    return value.value.replace(/\$\{([^}]+)\}/g, (_, name: string) => given[name] ?? name);
  if (Array.isArray(value)) return value.map((item) => filled(item, given));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, given)]));
}

describe.each(Object.entries(KINDS))('deploy/lambda/%s', (file, { code, sizes }) => {
  const template = readTemplate(file);
  const { Resources, Parameters } = template;
  const worker = Resources.Worker!.Properties;

  test('refers only to what it has', () => {
    const given = ['AWS::Partition', 'AWS::Region', 'AWS::NoValue'];
    const known = [...Object.keys(Parameters), ...Object.keys(Resources), ...given];
    const named = [Resources, template.Outputs].flatMap((part) => callsIn(part).flatMap(namesIn));
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
    for (const name of Object.keys(Parameters)) expect(named).toContain(name);
    for (const { DependsOn } of Object.values(Resources))
      if (DependsOn) expect(Resources).toHaveProperty(DependsOn);
    expect(template.Transform).toBe('AWS::Serverless-2016-10-31');
  });

  test('raises alarms of this function, to a topic if there is one', () => {
    const alarms = Object.values(Resources).filter(({ Type }) => Type === 'AWS::CloudWatch::Alarm');
    const texts = alarms.map(({ Properties }) => JSON.stringify(Properties));
    expect(texts.map((text) => /"MetricName":"(\w+)"/.exec(text)?.[1])).toEqual([
      'Errors',
      'Throttles',
      'Duration',
    ]);
    for (const { Properties } of alarms) {
      expect(callsIn(Properties)).toContainEqual(new Call('Ref', 'FunctionName'));
      expect(Properties.AlarmActions).toEqual([
        'HasAlarmTopic',
        [new Call('Ref', 'AlarmTopic')],
        new Call('Ref', 'AWS::NoValue'),
      ]);
    }
  });

  test('makes the function that deploy makes', () => {
    expect(worker).toMatchObject(code);
    expect(
      ['FunctionName', 'MemorySize', 'Timeout', 'TmpSize', 'Architecture'].map(
        (name) => Parameters[name]?.Default,
      ),
    ).toEqual([sizes.name, sizes.memoryMb, 120, sizes.tmpMb, sizes.architecture]);
    const { Variables } = worker.Environment as { Variables: object };
    const settings = Object.values(SETTINGS).map(({ env }) => env as string);
    expect(Object.keys(Variables).filter((name) => !settings.includes(name))).toEqual([]);
    expect(Object.keys(Variables)).toContain('SEINE_BLOBS');
  });

  test('lets it do what deploy lets it do', () => {
    const role = Resources.Role!.Properties as {
      AssumeRolePolicyDocument: object;
      Policies: { PolicyDocument: object }[];
    };
    const given = {
      FunctionName: 'seine',
      BlobsBucket: 'bucket',
      BlobsPrefix: 'crawl',
      'AWS::Partition': 'aws',
      'AWS::Region': 'eu-west-1',
    };
    const wanted = { name: 'seine', region: 'eu-west-1', blobs: 's3://bucket/crawl' } as Wanted;
    expect(filled(role.Policies[0]!.PolicyDocument, given)).toEqual(policyOf(wanted));
    expect(role.AssumeRolePolicyDocument).toEqual(TRUST);
  });
});
