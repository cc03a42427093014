import type { AppSettings } from '../app/app.ts';
import { hideCredentials } from '../core/text/redact.ts';

/** Where a server keeps things, without credentials. */
export interface ServerPlace {
  store: string;
  blobs: string;
  dispatch: string[];
}

export function placeOf({ store, blobs, dir, dispatch = [] }: AppSettings): ServerPlace {
  return {
    store: store ? hideCredentials(store.url) : dir,
    blobs: hideCredentials(blobs ?? dir),
    dispatch: dispatch.length === 0 ? ['threads'] : dispatch.map(({ kind }) => kind),
  };
}
