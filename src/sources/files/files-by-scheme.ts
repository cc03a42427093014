import { isHttpUrl, isRemote } from '../../core/job-schema/source-name.ts';
import type { AddressGuard } from '../../core/url/address-guard.ts';
import type { RemoteFiles } from '../../ports/remote-files.ts';
import { openLocalFiles } from './local-files.ts';

/** The files that a name means by how it begins. Each kind is opened when it is first named. */
export interface FilesByScheme {
  of(url: string): Promise<RemoteFiles>;
  close(): Promise<void>;
}

/** `web`: which addresses are dialled for files on web servers. */
export function openFilesByScheme(
  openS3: () => Promise<RemoteFiles>,
  web: { guard: AddressGuard; jobAllowsPrivate: boolean; privateServices?: boolean | undefined },
): FilesByScheme {
  const opened = new Map<string, Promise<RemoteFiles>>();
  const openers = {
    http: async () => (await import('./http-files.ts')).openHttpFiles(web),
    s3: openS3,
    local: async () => openLocalFiles(),
  };
  return {
    of(url) {
      const kind = isHttpUrl(url) ? 'http' : isRemote(url) ? 's3' : 'local';
      const files = opened.get(kind) ?? openers[kind]();
      opened.set(kind, files);
      return files;
    },
    async close() {
      const all = await Promise.allSettled(opened.values());
      opened.clear();
      await Promise.all(all.map((files) => (files.status === 'fulfilled' ? files.value.close() : undefined)));
    },
  };
}
