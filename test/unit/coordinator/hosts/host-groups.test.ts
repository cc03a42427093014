import { describe, expect, test, vi } from 'vitest';
import { HostGroups, LOOKUP_MS } from '../../../../src/coordinator/hosts/host-groups.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { addressGroup, compileSites } from '../../../../src/core/politeness/host-groups.ts';
import type { Resolver } from '../../../../src/ports/resolver.ts';
import type { HostStore } from '../../../../src/ports/store.ts';
import { specOf } from '../../../support/fixtures.ts';

type Politeness = NonNullable<JobInput['politeness']>;

/** Keeps what is noted, like a store, for as many coordinators as there are. */
function openNotes(): Pick<HostStore, 'groupsOf' | 'noteGroups'> {
  const notes = new Map<string, string>();
  const read = (hosts: Iterable<string>) =>
    new Map([...hosts].flatMap((host) => (notes.has(host) ? [[host, notes.get(host)!] as const] : [])));
  return {
    groupsOf: async (_, hosts) => read(hosts),
    noteGroups: async (_, groups) => {
      for (const [host, group] of groups) if (!notes.has(host)) notes.set(host, group);
      return read(groups.keys());
    },
  };
}

function groupsOf(politeness: Politeness, resolver: Resolver | null = null, notes = openNotes()) {
  return new HostGroups({
    store: { hosts: notes as HostStore },
    job: { id: 1, spec: specOf({ politeness }) },
    resolver,
  });
}

async function groupsFor(groups: HostGroups, ...hosts: string[]): Promise<string[]> {
  return hosts.map(await groups.of(() => hosts));
}

function openResolver(names: Record<string, string[]>): Resolver & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async addressesOf(name) {
      asked.push(name);
      return names[name] ?? [];
    },
  };
}

describe('hosts counted by themselves or by site', () => {
  test('need nobody to be asked, and no list to be looked at', async () => {
    const hosts = () => {
      throw new Error('looked at');
    };
    expect((await groupsOf({}).of(hosts))('a.shop.example')).toBe('a.shop.example');
    expect((await groupsOf({ groupBy: 'site' }).of(hosts))('a.shop.example')).toBe('*.shop.example');
  });

  test('a registrable domain is one group, whatever the ports; what has none is by itself', () => {
    const groupOf = compileSites(specOf());
    expect(groupOf('a.shop.co.uk:81')).toBe(groupOf('b.shop.co.uk'));
    expect(groupOf('alice.github.io')).not.toBe(groupOf('bob.github.io'));
    expect(groupOf('127.0.0.1:80')).toBe('127.0.0.1:80');
  });

  test('a host with a rule of its own keeps it, one with the rule of its group shares', () => {
    const groupOf = compileSites(
      specOf({ politeness: { hosts: { 'img.shop.example': { rate: 1 }, '*.shop.example': { rate: 3 } } } }),
    );
    expect(groupOf('img.shop.example')).toBe('img.shop.example');
    expect(groupOf('www.shop.example')).toBe('*.shop.example');
    expect(groupOf('shop.example')).toBe('*.shop.example');
  });
});

describe('hosts counted by address', () => {
  const byAddress = { groupBy: 'address' } as const;

  test('names that lead to one address are one group, with literals of it in any spelling', async () => {
    const resolver = openResolver({
      'a.example': ['203.0.113.9', '203.0.113.7'],
      'b.example': ['2001:db8::1', '203.0.113.7', '203.0.113.9'],
      'c.example': ['2001:db8::1'],
    });
    const hosts = ['a.example', 'b.example:8080', '203.0.113.7', '[::ffff:cb00:7107]:81', 'c.example'];
    expect(await groupsFor(groupsOf(byAddress, resolver), ...hosts)).toEqual([
      ...Array(4).fill('ip:203.0.113.7'),
      'ip:2001:db8::1',
    ]);
    expect(resolver.asked).toEqual(['a.example', 'b.example', 'c.example']);
    expect(addressGroup(['nonsense'])).toBeNull();
  });

  test('a name is looked up once, and counted there for good', async () => {
    const names: Record<string, string[]> = { 'a.example': ['203.0.113.7'] };
    const resolver = openResolver(names);
    const notes = openNotes();
    const groups = groupsOf(byAddress, resolver, notes);
    const [first, second] = await Promise.all([
      groupsFor(groups, 'a.example'),
      groupsFor(groups, 'a.example'),
    ]);
    expect([first, second]).toEqual([['ip:203.0.113.7'], ['ip:203.0.113.7']]);
    names['a.example'] = ['203.0.113.8'];
    expect(await groupsFor(groups, 'a.example')).toEqual(['ip:203.0.113.7']);
    expect(await groupsFor(groupsOf(byAddress, resolver, notes), 'a.example')).toEqual(['ip:203.0.113.7']);
    expect(resolver.asked).toEqual(['a.example']);
  });

  test('names without an address, or not in time, are counted by themselves', async () => {
    vi.useFakeTimers();
    try {
      const resolver: Resolver = {
        addressesOf: (name) => (name === 'slow.example' ? new Promise(() => {}) : Promise.resolve([])),
      };
      const groups = groupsFor(groupsOf(byAddress, resolver), 'slow.example', 'none.example:81', '10.0.0.1');
      await vi.advanceTimersByTimeAsync(LOOKUP_MS);
      expect(await groups).toEqual(['slow.example', 'none.example:81', 'ip:10.0.0.1']);
    } finally {
      vi.useRealTimers();
    }
  });

  test('a host with a rule of its own keeps it; a rule for the address is for all at it', async () => {
    const resolver = openResolver({ 'a.example': ['203.0.113.7'], 'b.example': ['203.0.113.7'] });
    const hosts = { 'a.example': { rate: 1 }, '203.0.113.7': { rate: 2 } };
    const groups = groupsOf({ ...byAddress, hosts }, resolver);
    expect(await groupsFor(groups, 'a.example', 'b.example', '203.0.113.7:81')).toEqual([
      'a.example',
      'ip:203.0.113.7',
      'ip:203.0.113.7',
    ]);
  });
});
