import { hash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EnvironmentSettings } from './environment.ts';
import { type FleetOptions, FunctionFleet } from './function-environments.ts';
import { ApiError } from './http-reply.ts';
import { layOutImage } from './image-folder.ts';
import type { Roles } from './roles.ts';

/** What a request says about a function, as the API of Lambda names it. */
export interface FunctionInput {
  FunctionName?: string;
  Runtime?: string;
  Role?: string;
  Handler?: string;
  Timeout?: number;
  MemorySize?: number;
  Architectures?: string[];
  EphemeralStorage?: { Size?: number };
  Environment?: { Variables?: Record<string, string> };
  PackageType?: 'Zip' | 'Image';
  Code?: CodeInput;
}

export interface CodeInput {
  ZipFile?: string;
  ImageUri?: string;
}

interface Code {
  codeSha256: string;
  codeSize: number;
  /** Of the handler; null for this installation's own. */
  module: string | null;
  imageUri: string | null;
  /** Of the image. */
  variables: Record<string, string>;
}

const OWN_CODE: Code = { codeSha256: '', codeSize: 0, module: null, imageUri: null, variables: {} };

interface Entry extends Code {
  input: FunctionInput;
  fleet: FunctionFleet;
  /** Lambda takes a while after each change, and refuses the next meanwhile. */
  readyAt: number;
  isNew: boolean;
}

const SETTLE_MS = 150;
const CODE_BYTES_MAX = 250 * 1024 ** 2;

interface RegistryOptions extends FleetOptions {
  runtime: string;
  /** Where code is unzipped. */
  dir: string;
  /** The folder of the one image that there is, whatever it is called. */
  image: string | null;
  /** Where environments ask for events. */
  api(): string;
  roles: Roles;
  onStart(pid: number): void;
  onLog(text: string): void;
}

/** The functions of an emulator. */
export class FunctionRegistry {
  readonly #entries = new Map<string, Entry>();
  readonly #options: RegistryOptions;
  #codes = 0;

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /** Without code of its own a function runs this installation's. */
  async create(input: FunctionInput, { checked = true } = {}): Promise<object> {
    const name = input.FunctionName ?? '';
    if (!/^[\w-]{1,64}$/.test(name))
      throw new ApiError(400, 'InvalidParameterValueException', 'bad function name');
    if (this.#entries.has(name))
      throw new ApiError(409, 'ResourceConflictException', `Function already exist: ${name}`);
    if (checked && !this.#options.roles.canBeAssumed(input.Role ?? ''))
      throw new ApiError(
        400,
        'InvalidParameterValueException',
        'The role defined for the function cannot be assumed by Lambda.',
      );
    const code = await this.#load(input.Code ?? {}, input.Handler);
    const full: FunctionInput = { Timeout: 3, MemorySize: 128, ...input };
    delete full.Code;
    const fleet = new FunctionFleet(this.#settingsOf(full, code), this.#options);
    const readyAt = checked ? performance.now() + SETTLE_MS : 0;
    this.#entries.set(name, { input: full, ...code, fleet, readyAt, isNew: true });
    return this.describe(name);
  }

  async updateCode(name: string, input: CodeInput): Promise<object> {
    const entry = this.#settled(name);
    if ((entry.imageUri !== null) !== (input.ImageUri !== undefined))
      throw new ApiError(400, 'InvalidParameterValueException', 'the package type cannot be changed');
    Object.assign(entry, await this.#load(input, entry.input.Handler));
    return this.#changed(name, entry);
  }

  updateConfiguration(name: string, input: FunctionInput): object {
    const entry = this.#settled(name);
    const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
    entry.input = { ...entry.input, ...given };
    return this.#changed(name, entry);
  }

  describe(name: string): object {
    const { input, codeSha256, codeSize, imageUri, readyAt, isNew } = this.#entry(name);
    const isBusy = performance.now() < readyAt;
    return {
      ...input,
      FunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:${name}`,
      CodeSha256: codeSha256,
      CodeSize: codeSize,
      Version: '$LATEST',
      PackageType: imageUri === null ? 'Zip' : 'Image',
      EphemeralStorage: { Size: input.EphemeralStorage?.Size ?? 512 },
      Architectures: input.Architectures ?? ['x86_64'],
      State: isBusy && isNew ? 'Pending' : 'Active',
      LastUpdateStatus: isBusy ? 'InProgress' : 'Successful',
    };
  }

  codeOf(name: string): object {
    const { imageUri } = this.#entry(name);
    return imageUri === null ? { RepositoryType: 'S3' } : { RepositoryType: 'ECR', ImageUri: imageUri };
  }

  fleet(name: string): FunctionFleet {
    return this.#entry(name).fleet;
  }

  memoryMb(name: string): number {
    return this.#entry(name).input.MemorySize ?? 128;
  }

  get fleets(): FunctionFleet[] {
    return [...this.#entries.values()].map(({ fleet }) => fleet);
  }

  #entry(name: string): Entry {
    const entry = this.#entries.get(name);
    if (!entry) throw new ApiError(404, 'ResourceNotFoundException', `Function not found: ${name}`);
    return entry;
  }

  #settled(name: string): Entry {
    const entry = this.#entry(name);
    if (performance.now() >= entry.readyAt) return entry;
    throw new ApiError(409, 'ResourceConflictException', `An update is in progress for resource: ${name}`);
  }

  #changed(name: string, entry: Entry): object {
    entry.readyAt = performance.now() + SETTLE_MS;
    entry.isNew = false;
    entry.fleet.replace(this.#settingsOf(entry.input, entry));
    return this.describe(name);
  }

  #settingsOf(input: FunctionInput, { module, variables }: Code): EnvironmentSettings {
    return {
      name: input.FunctionName!,
      runtime: this.#options.runtime,
      module,
      memoryMb: input.MemorySize ?? 128,
      timeoutMs: (input.Timeout ?? 3) * 1_000,
      variables: { ...variables, ...input.Environment?.Variables },
      api: this.#options.api(),
      onStart: this.#options.onStart,
      onLog: this.#options.onLog,
    };
  }

  #load({ ZipFile, ImageUri }: CodeInput, handler = 'index.handler'): Promise<Code> {
    if (ImageUri !== undefined) return this.#layOut(ImageUri);
    return ZipFile === undefined ? Promise.resolve(OWN_CODE) : this.#unpack(ZipFile, handler);
  }

  async #layOut(imageUri: string): Promise<Code> {
    const { image } = this.#options;
    if (image === null)
      throw new ApiError(400, 'InvalidParameterValueException', `Source image ${imageUri} does not exist.`);
    const dir = join(this.#options.dir, `code-${++this.#codes}`);
    const { variables, handler } = await layOutImage(image, dir);
    const codeSha256 = hash('sha256', imageUri, 'hex');
    return { codeSha256, codeSize: 0, module: moduleOf(dir, handler), imageUri, variables };
  }

  async #unpack(zip: string, handler: string): Promise<Code> {
    const bytes = Buffer.from(zip, 'base64');
    const { unzipSync } = await import('fflate');
    const dir = join(this.#options.dir, `code-${++this.#codes}`);
    let size = 0;
    for (const [path, content] of Object.entries(unzipSync(bytes))) {
      size += content.length;
      if (path.split('/').includes('..') || path.startsWith('/') || size > CODE_BYTES_MAX)
        throw new ApiError(400, 'InvalidParameterValueException', 'Could not unzip uploaded file.');
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), content);
    }
    const codeSha256 = hash('sha256', bytes, 'base64');
    return { ...OWN_CODE, codeSha256, codeSize: bytes.length, module: moduleOf(dir, handler) };
  }
}

/** As Lambda's own loop finds it. */
function moduleOf(dir: string, handler: string): string {
  const base = join(dir, handler.split('.')[0]!);
  const endings = ['.mjs', '.js', '.cjs'];
  return endings.map((ending) => base + ending).find((path) => existsSync(path)) ?? `${base}.mjs`;
}
