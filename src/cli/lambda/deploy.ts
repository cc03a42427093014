import { setTimeout as sleep } from 'node:timers/promises';
import {
  awsOptions,
  type LambdaPlace,
  type LoadedLambda,
  loadLambda,
} from '../../aws/lambda/lambda-client.ts';
import { SeineError } from '../../core/errors.ts';
import { ask, askOrNull, documentOf, isBusy, LOOK_MS, PATIENCE_MS, patiently } from './deploy-calls.ts';
import {
  checkPackage,
  configurationOf,
  differencesOf,
  isSameCode,
  POLICY_NAME,
  type Present,
  policyOf,
  RUNTIME,
  sameJson,
  TRUST,
  type Wanted,
  type WantedCode,
} from './deploy-plan.ts';

/** One change, and how it is made. */
interface Step {
  text: string;
  run(): Promise<void>;
}

type Iam = typeof import('./iam-sdk.ts');

/** Looks at what is there, and says what must be done. Nothing has changed until the steps are run, in order. */
class Deployment {
  readonly #wanted: Wanted;
  readonly #place: LambdaPlace;
  readonly #code: WantedCode;
  readonly #lambda: LoadedLambda;
  readonly #iam: Iam;
  readonly #roles: InstanceType<Iam['IAMClient']>;
  #roleArn: string | null = null;

  constructor(
    options: { wanted: Wanted; place: LambdaPlace; code: WantedCode },
    lambda: LoadedLambda,
    iam: { sdk: Iam; client: InstanceType<Iam['IAMClient']> },
  ) {
    this.#wanted = options.wanted;
    this.#place = options.place;
    this.#code = options.code;
    this.#lambda = lambda;
    this.#iam = iam.sdk;
    this.#roles = iam.client;
  }

  async plan(): Promise<Step[]> {
    return [...(await this.#planRole()), ...(await this.#planFunction())];
  }

  close(): void {
    this.#lambda.client.destroy();
    this.#roles.destroy();
  }

  async #planRole(): Promise<Step[]> {
    const { role, blobs } = this.#wanted;
    const { GetRoleCommand, CreateRoleCommand, UpdateAssumeRolePolicyCommand } = this.#iam;
    const found = await this.#askIam(() => this.#roles.send(new GetRoleCommand({ RoleName: role })));
    const steps: Step[] = [];
    const trust = JSON.stringify(TRUST);
    if (!found) {
      steps.push({
        text: `create the role ${role}`,
        run: async () => {
          const request = new CreateRoleCommand({ RoleName: role, AssumeRolePolicyDocument: trust });
          const made = await this.#ask(`the role ${role}`, () => this.#roles.send(request));
          this.#roleArn = made.Role!.Arn!;
        },
      });
    } else {
      this.#roleArn = found.Role!.Arn!;
      if (!sameJson(documentOf(found.Role!.AssumeRolePolicyDocument), TRUST))
        steps.push({
          text: `let Lambda assume the role ${role}`,
          run: async () => {
            const request = new UpdateAssumeRolePolicyCommand({ RoleName: role, PolicyDocument: trust });
            await this.#ask(`the role ${role}`, () => this.#roles.send(request));
          },
        });
    }
    const may = blobs === null ? 'write its log' : `write its log, read and write ${blobs}`;
    if (!found || !(await this.#hasPolicy()))
      steps.push({ text: `let the role ${role} ${may}`, run: () => this.#putPolicy() });
    return steps;
  }

  async #hasPolicy(): Promise<boolean> {
    const request = new this.#iam.GetRolePolicyCommand({
      RoleName: this.#wanted.role,
      PolicyName: POLICY_NAME,
    });
    const found = await this.#askIam(() => this.#roles.send(request));
    return found !== null && sameJson(documentOf(found.PolicyDocument), policyOf(this.#wanted));
  }

  async #putPolicy(): Promise<void> {
    const request = new this.#iam.PutRolePolicyCommand({
      RoleName: this.#wanted.role,
      PolicyName: POLICY_NAME,
      PolicyDocument: JSON.stringify(policyOf(this.#wanted)),
    });
    await this.#ask(`the role ${this.#wanted.role}`, () => this.#roles.send(request));
  }

  async #planFunction(): Promise<Step[]> {
    const { name, kind, memoryMb, timeoutSeconds, tmpMb, architecture } = this.#wanted;
    const present = await this.#present();
    if (!present) {
      const runs = kind === 'browser' ? 'an image' : RUNTIME;
      const size = `${memoryMb} MB, ${timeoutSeconds} s, /tmp ${tmpMb} MB, ${runs}, ${architecture}`;
      return [{ text: `create the function ${name}: ${size}`, run: () => this.#create() }];
    }
    checkPackage(this.#wanted, present);
    const steps: Step[] = [];
    if (!isSameCode(present, this.#code) || present.architecture !== architecture)
      steps.push({ text: `update the code of ${name} (${architecture})`, run: () => this.#updateCode() });
    const differs = differencesOf(present, this.#wanted, this.#roleArn);
    if (differs.length > 0)
      steps.push({ text: `change ${name}: ${differs.join('; ')}`, run: () => this.#updateConfiguration() });
    return steps;
  }

  async #present(): Promise<Present | null> {
    const { sdk, client } = this.#lambda;
    const request = new sdk.GetFunctionConfigurationCommand({ FunctionName: this.#wanted.name });
    const found = await this.#orNull(`the function ${this.#wanted.name}`, () => client.send(request));
    if (!found) return null;
    return {
      role: found.Role ?? '',
      codeSha256: found.CodeSha256 ?? '',
      imageUri: found.PackageType === 'Image' ? await this.#imageOf(this.#wanted.name) : null,
      architecture: found.Architectures?.[0] ?? 'x86_64',
      Runtime: found.Runtime ?? '',
      Handler: found.Handler ?? '',
      Timeout: found.Timeout ?? 3,
      MemorySize: found.MemorySize ?? 128,
      EphemeralStorage: { Size: found.EphemeralStorage?.Size ?? 512 },
      Environment: { Variables: found.Environment?.Variables ?? {} },
    };
  }

  async #imageOf(name: string): Promise<string> {
    const { sdk, client } = this.#lambda;
    const request = new sdk.GetFunctionCommand({ FunctionName: name });
    const { Code } = await this.#ask(`the function ${name}`, () => client.send(request));
    return Code?.ImageUri ?? '';
  }

  #codeInput(): { ZipFile: Uint8Array } | { ImageUri: string } {
    return this.#code.kind === 'zip' ? { ZipFile: this.#code.bytes } : { ImageUri: this.#code.uri };
  }

  async #create(): Promise<void> {
    const { sdk, client } = this.#lambda;
    const { name, architecture } = this.#wanted;
    const request = new sdk.CreateFunctionCommand({
      FunctionName: name,
      Role: this.#roleArn!,
      PackageType: this.#code.kind === 'zip' ? 'Zip' : 'Image',
      Code: this.#codeInput(),
      Architectures: [architecture],
      ...configurationOf(this.#wanted),
    });
    // A role that has just been made cannot be assumed yet.
    const isEarly = (error: unknown) => /cannot be assumed/.test((error as Error).message);
    await this.#ask(`the function ${name}`, () => patiently(() => client.send(request), isEarly));
    await this.#settled();
  }

  async #updateCode(): Promise<void> {
    const { sdk, client } = this.#lambda;
    const { name, architecture } = this.#wanted;
    const request = new sdk.UpdateFunctionCodeCommand({
      FunctionName: name,
      ...this.#codeInput(),
      Architectures: [architecture],
    });
    await this.#ask(`the function ${name}`, () => patiently(() => client.send(request), isBusy));
    await this.#settled();
  }

  async #updateConfiguration(): Promise<void> {
    const { sdk, client } = this.#lambda;
    const { name } = this.#wanted;
    const request = new sdk.UpdateFunctionConfigurationCommand({
      FunctionName: name,
      Role: this.#roleArn!,
      ...configurationOf(this.#wanted),
    });
    await this.#ask(`the function ${name}`, () => patiently(() => client.send(request), isBusy));
    await this.#settled();
  }

  /** Until the last change is in force. */
  async #settled(): Promise<void> {
    const { sdk, client } = this.#lambda;
    const { name } = this.#wanted;
    const request = new sdk.GetFunctionConfigurationCommand({ FunctionName: name });
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until; await sleep(LOOK_MS)) {
      const now = await this.#ask(`the function ${name}`, () => client.send(request));
      if (now.State === 'Failed' || now.LastUpdateStatus === 'Failed')
        throw new SeineError(`the function ${name} failed: ${now.StateReason ?? now.LastUpdateStatusReason}`);
      if (now.State === 'Active' && now.LastUpdateStatus === 'Successful') return;
    }
    throw new SeineError(`the function ${name} is not ready after ${PATIENCE_MS / 1_000} s`, {
      hint: 'check it in the AWS console, then deploy again',
    });
  }

  #askIam<T>(work: () => Promise<T>): Promise<T | null> {
    return this.#orNull(`the role ${this.#wanted.role}`, work);
  }

  #orNull<T>(what: string, work: () => Promise<T>): Promise<T | null> {
    return askOrNull(work, { what, endpoint: this.#place.endpoint });
  }

  #ask<T>(what: string, work: () => Promise<T>): Promise<T> {
    return ask(work, { what, endpoint: this.#place.endpoint });
  }
}

export async function openDeployment(
  place: LambdaPlace,
  wanted: Wanted,
  code: WantedCode,
): Promise<Deployment> {
  const lambda = await loadLambda(place, { sockets: 2 });
  const sdk = await import('./iam-sdk.ts');
  const client = new sdk.IAMClient(await awsOptions(place));
  return new Deployment({ wanted, place, code }, lambda, { sdk, client });
}
