import type { NewTask } from '../../../core/model.ts';

/**
 * Tasks on their way to the thread that writes them down, by column: thousands of objects would take longer to copy than to
 * write. URLs are normalised, so there is no line break in them.
 */
export interface PackedTasks {
  count: number;
  urls: string;
  hosts: string[];
  /** For each task, the place of its host in `hosts`. */
  hostAt: Uint32Array;
  columns: { [K in keyof Columns]: Column<Columns[K]> };
}

type Columns = Omit<NewTask, 'url' | 'host' | 'referrer'> & { referrer: string | null };
type Column<T> = { all: T } | { each: T[] };

export function packTasks(tasks: readonly NewTask[]): PackedTasks {
  const places = new Map<string, number>();
  const hostAt = Uint32Array.from(tasks, ({ host }) => {
    const place = places.get(host) ?? places.size;
    if (place === places.size) places.set(host, place);
    return place;
  });
  const column = <T>(of: (task: NewTask) => T): Column<T> => {
    const each = tasks.map(of);
    const [all] = each;
    return all !== undefined && each.every((value) => value === all) ? { all } : { each };
  };
  return {
    count: tasks.length,
    urls: tasks.map(({ url }) => url).join('\n'),
    hosts: [...places.keys()],
    hostAt,
    columns: {
      depth: column(({ depth }) => depth),
      priority: column(({ priority }) => priority),
      route: column(({ route }) => route),
      meta: column(({ meta }) => meta),
      hops: column(({ hops }) => hops),
      template: column(({ template }) => template),
      modifiedAt: column(({ modifiedAt }) => modifiedAt),
      referrer: column(({ referrer }) => referrer ?? null),
    },
  };
}

export function unpackTasks({ count, urls, hosts, hostAt, columns }: PackedTasks): NewTask[] {
  if (count === 0) return [];
  const at = <T>(column: Column<T>, index: number): T =>
    'each' in column ? column.each[index]! : column.all;
  const { depth, priority, route, meta, hops, template, modifiedAt, referrer } = columns;
  return urls.split('\n').map((url, index) => {
    const from = at(referrer, index);
    const task: NewTask = {
      url,
      host: hosts[hostAt[index]!]!,
      depth: at(depth, index),
      priority: at(priority, index),
      route: at(route, index),
      meta: at(meta, index),
      hops: at(hops, index),
      template: at(template, index),
      modifiedAt: at(modifiedAt, index),
    };
    return from === null ? task : { ...task, referrer: from };
  });
}
