import { afterAll, vi } from 'vitest';

/** Files share a process: whatever one of them sets in it, the next one starts with what was there before. */
const before = { ...process.env };
afterAll(() => {
  vi.useRealTimers();
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  for (const [name, value] of Object.entries(before))
    if (process.env[name] !== value) process.env[name] = value;
});
