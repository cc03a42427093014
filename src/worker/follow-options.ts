import { LIMITS } from '../core/limits.ts';
import type { Meta } from '../core/model.ts';
import { toJson } from './to-json.ts';

/** What a handler may ask for besides the page: links of its own. */
export interface FollowOptions {
  route?: string;
  priority?: number;
  meta?: Meta;
}

/** As plain data: what a handler makes by mistake must fail here, with its page, and not on the way to the store. */
export function checkedOptions({ route, priority, meta }: FollowOptions): FollowOptions {
  if (route !== undefined && typeof route !== 'string') throw new Error('page.follow: route is not a name');
  if (priority !== undefined && !Number.isSafeInteger(priority))
    throw new Error(`page.follow: priority is not an integer: ${priority}`);
  return {
    ...(route === undefined ? {} : { route }),
    ...(priority === undefined ? {} : { priority }),
    ...(meta === undefined || meta === null ? {} : { meta: plainMeta(meta) }),
  };
}

function plainMeta(meta: Meta): Meta {
  const json = toJson(meta, 'page.follow: meta');
  if (!json?.startsWith('{')) throw new Error('page.follow: meta is not an object');
  if (json.length > LIMITS.sourceRowBytesMax)
    throw new Error(`page.follow: meta has ${json.length} bytes, the limit is ${LIMITS.sourceRowBytesMax}`);
  return JSON.parse(json);
}
