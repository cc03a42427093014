import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import {
  type EmulatorOptions,
  type LambdaEmulator,
  startLambdaEmulator,
} from '../../../src/lambda-emulator/emulator.ts';
import type { Logger } from '../../../src/ports/ambient.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import {
  type LambdaDispatcherOptions,
  openLambdaDispatcher,
} from '../../../src/transport/lambda/lambda-dispatcher.ts';

import { FLEET_KEY } from '../seine-process.ts';

/** For requests that nothing answers, or only a server of the tests that looks at no signature. */
export const FAKE_CREDENTIALS = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: 'test' };

/** The environment in which commands find an emulator, and may call it. */
export function emulatorEnv({ url, credentialsFile }: Pick<LambdaEmulator, 'url' | 'credentialsFile'>) {
  return { SEINE_LAMBDA_ENDPOINT: url, SEINE_LAMBDA_CREDENTIALS: credentialsFile };
}

export const silent: Logger = { info() {}, warn() {}, error() {} };

export interface LambdaSetup {
  emulator: LambdaEmulator;
  open(options?: Partial<LambdaDispatcherOptions>): Promise<Dispatcher>;
  close(): Promise<void>;
}

/** An emulator whose function keeps its pages in `blobsDir`, and dispatchers that send there. */
export async function openLambdaSetup(blobsDir: string, options: EmulatorOptions = {}): Promise<LambdaSetup> {
  Object.assign(process.env, FAKE_CREDENTIALS);
  const emulator = await startLambdaEmulator({
    concurrency: 4,
    ...options,
    variables: { SEINE_BLOBS: blobsDir, SEINE_FLEET_KEY: FLEET_KEY, ...options.variables },
  });
  return {
    emulator,
    open: (more) =>
      openLambdaDispatcher({
        name: 'seine',
        endpoint: emulator.url,
        credentials: emulator.credentialsFile,
        fleetKeys: [FLEET_KEY],
        concurrency: options.concurrency ?? 4,
        blobs: { place: blobsDir, open: async () => openFolderBlobs(blobsDir) },
        logger: silent,
        ...more,
      }),
    close: () => emulator.close(),
  };
}
